// What the service says in English, in Chinese: by pattern, numbers and names kept. What no pattern knows stays English.

type Pattern = [pattern: RegExp, chinese: string];

// "$1" is the first group as it stands, "@1" the first group translated in turn.
const REASONS: Pattern[] = [
  [/^(\d+) x (.+)$/, "$2 × $1"],
  [
    /^process failure: (\d+) calls \(limit (\d+)\); check printing, etching, focus and whether this is the right product and reference$/,
    "制程异常：$1 处报点（上限 $2）；请检查印刷、蚀刻、对焦，并确认产品与黄金样板是否正确",
  ],
  [
    /^a large area of (\S+) x (\S+) px at x (\S+), y (\S+) does not look like the reference, and no defect class names it$/,
    "x $3、y $4 处有 $1 × $2 px 的大面积区域与黄金样板不符，且不属于任何缺陷类别",
  ],
  [
    /^(\S+) % of the board was not covered \((\d+) cells of (\d+) px between x (\d+) and (\d+), y (\d+) and (\d+)\): (.+)$/,
    "$1% 的板面未检测（x $4 至 $5、y $6 至 $7 之间 $2 个 $3 px 的单元）：@8",
  ],
  [/^the board is not in the picture there, or there is no reference to compare it with$/, "该处不在画面内，或没有黄金样板可对比"],
  [/^the model gave no finite number there; check the checkpoint and the device$/, "模型在该处没有给出有效数值；请检查模型文件与设备"],
  [/^all of the board lies in ignore zones, so nothing was inspected; check the recipe$/, "整板都在忽略区内，未作任何检测；请检查配方"],
  [/^model (\S+) inspects only against a golden reference; send one$/, "模型 $1 必须对比黄金样板检测；请提供黄金样板"],
  [/^duplicate_frame: serial '(.*)' sent the same picture, inspection (\S+)$/, "重复图片：序列号 $1 已发送过同一张图片，检测 $2"],
  [/^duplicate_frame: another serial came with the same picture$/, "重复图片：另一序列号已使用同一张图片"],
  [/^recipe locked: (.+)$/, "配方已锁定：@1"],
  [/^challenge board '(.*)' was not inspected: (.+)$/, "点检板 $1 未完成检测：@2"],
  [/^challenge board '(.*)': (.+) not called$/, "点检板 $1：未报出 $2"],
];

const ALIGNMENT: Pattern[] = [
  [
    /^cannot align: only (\S+)% of the (.+) shows structure \(limit (\S+)%\); send a picture that shows more of the board$/,
    "无法对齐：@2只有 $1% 的面积有图形（下限 $3%）；请提供包含更多板面的图片",
  ],
  [/^image$/, "板图"],
  [/^reference$/, "黄金样板"],
  [/^cannot align: the board lies (\S+) px off \(limit (\S+) px\); move it to its place$/, "无法对齐：板子偏移 $1 px（上限 $2 px）；请将板子放回原位"],
  [
    /^cannot align: the board is turned by (?:about )?(\S+) degrees \(limit (\S+)\); place it as in the reference$/,
    "无法对齐：板子旋转了 $1°（上限 $2°）；请按黄金样板的方向放置",
  ],
  [/^cannot align: the board's scale is off by (\S+)% \(limit (\S+)%\); send pictures of the same resolution$/, "无法对齐：比例相差 $1%（上限 $2%）；请提供相同分辨率的图片"],
  [
    /^cannot align: the board looks (\S+)% longer one way than the other \(limit (\S+)%\); .+$/,
    "无法对齐：板子在一个方向上被拉长 $1%（上限 $2%）；相机与传送带的速度是否与拍摄黄金样板时一致？",
  ],
  [
    /^cannot align: places lie (\S+) px off after alignment \(limit (\S+) px\); .+$/,
    "无法对齐：对齐后仍相差 $1 px（上限 $2 px）；板子是否翘曲，或黄金样板是另一版本？",
  ],
  [/^cannot align: (.+) has (\d+)x(\d+) px; send at least (\d+) px a side$/, "无法对齐：@1只有 $2 × $3 px；每边至少需要 $4 px"],
  [
    /^another product or another side: (\S+)% of the board's structure matches the reference \(limit (\S+)%\), and no turn or mirroring fits; .+$/,
    "产品或板面不符：只有 $1% 的图形与黄金样板一致（下限 $2%），旋转或镜像也不符；请使用同一产品、同一板面、同一比例的黄金样板",
  ],
  [
    /^another product on the same fixture: over (\S+)% of the board, in one piece, the copper is not that of the reference \(limit (\S+)%\), though (\S+)% of all structure matches; .+$/,
    "同一治具上的另一产品：整块 $1% 板面的铜箔与黄金样板不符（上限 $2%），尽管 $3% 的图形一致；请使用该产品的黄金样板",
  ],
  [
    /^(upside down, turned by 180 degrees|turned by 90 degrees (?:anti)?clockwise|mirrored.*?): (\S+)% of the board's structure matches that way, (\S+)% as it was posted \(limit (\S+)%\); .+$/,
    "@1：按该方向有 $2% 的图形一致，按原图只有 $3%（下限 $4%）",
  ],
  [/^upside down, turned by 180 degrees$/, "上下颠倒，旋转了 180°"],
  [/^turned by 90 degrees clockwise$/, "顺时针旋转了 90°"],
  [/^turned by 90 degrees anticlockwise$/, "逆时针旋转了 90°"],
  [/^mirrored, left and right exchanged$/, "左右镜像"],
  [/^mirrored, top and bottom exchanged$/, "上下镜像"],
  [/^mirrored and turned by 90 degrees(?: the other way)?$/, "镜像并旋转了 90°"],
  [/^reference does not fit: its correlation with the board is (\S+) \(limit (\S+)\); .+$/, "黄金样板不符：与板图的相关性为 $1（下限 $2）；可能是另一产品或板面、黑白颠倒或未对齐"],
];

const PICTURE: Pattern[] = [
  [/^reference: (.+)$/, "黄金样板：@1"],
  [/^black frame: 99\.5 % of pixels are at grey level (\d+) or darker \(limit (\d+) of 255\); .+$/, "黑帧：99.5% 的像素灰度不高于 $1（下限 $2/255）；请检查光源、镜头盖和曝光"],
  [/^almost blank: grey levels vary by (\S+) \(standard deviation, limit (\S+)\), so no board is to be seen$/, "几乎空白：灰度标准差仅 $1（下限 $2），画面中看不到板子"],
  [/^washed out: (\S+)% of pixels are (\d+) or brighter \(limit (\S+)%\); lower the exposure$/, "严重过曝：$1% 的像素灰度达到 $2 以上（上限 $3%）；请降低曝光"],
  [/^too dark: 95 % of pixels are at grey level (\d+) or darker \(limit (\d+) of 255\); raise the exposure$/, "过暗：95% 的像素灰度不高于 $1（下限 $2/255）；请提高曝光"],
  [/^low contrast: (\d+) grey levels between the darkest and the lightest place \(limit (\d+)\); .+$/, "对比度过低：最暗与最亮处仅差 $1 级灰度（下限 $2）；请检查光源和曝光"],
  [/^out of focus: blur effect (\S+) \(limit (\S+), sharp boards (\S+)\); focus the camera$/, "失焦：模糊度 $1（上限 $2，清晰板为 $3）；请对焦"],
  [/^salt-and-pepper noise: (\S+)% of pixels are black or white specks \(limit (\S+)%\); .+$/, "椒盐噪声：$1% 的像素为黑白噪点（上限 $2%）；请检查相机、线缆和采集卡"],
  [/^salt-and-pepper noise: (\S+)% of pixels are black or white specks \(boards have less than (\S+)%\)$/, "椒盐噪声：$1% 的像素为黑白噪点（正常低于 $2%）"],
  [/^over-exposed: (\S+)% of pixels are (\d+) or brighter \(limit (\S+)%\)$/, "过曝：$1% 的像素灰度达到 $2 以上（上限 $3%）"],
  [/^under-exposed: 95 % of pixels are at grey level (\d+) or darker \(limit (\d+) of 255\)$/, "欠曝：95% 的像素灰度不高于 $1（下限 $2/255）"],
  [/^low contrast: (\d+) grey levels \(boards have (\d+) and more\)$/, "对比度低：仅 $1 级灰度（正常不低于 $2）"],
  [/^out of focus: blur effect (\S+) \(sharp boards are below (\S+)\)$/, "略微失焦：模糊度 $1（清晰板低于 $2）"],
  [/^taken as a 12-bit frame: no value exceeds (\d+) \(largest (\d+)\); .+$/, "按 12 位图像处理：没有像素值超过 $1（最大 $2）；若相机输出 16 位，则为欠曝"],
  [/^reference: scaled from (\d+) to 255, the board from (\d+); .+$/, "黄金样板按 $1 缩放到 255，而板图按 $2；请以相同位深和曝光拍摄"],
];

const LINE: Pattern[] = [
  [/^challenge overdue: a challenge board of recipe '(.*)' was due at (\S+)$/, "点检逾期：配方 $1 应在 $2 之前过点检板"],
  [/^drift: (.+) is (\S+)% (above|below) the recipe's baseline since (.+)$/, "漂移：自 $4 起，@1比配方基线@3 $2%"],
  [/^above$/, "高"],
  [/^below$/, "低"],
  [/^mean grey$/, "平均灰度"],
  [/^contrast$/, "对比度"],
  [/^sharpness$/, "清晰度"],
  [
    /^repeater: (.+) at \((\S+), (\S+)\) (px|mm) on (\d+) boards running; a mask or screen defect repeats$/,
    "重复缺陷：连续 $5 块板在（$2，$3）$4 处出现 $1；菲林或网版上的缺陷在重复",
  ],
  [
    /^the device had too little memory for tiles of up to (\d+) px: inspected in tiles of up to (\d+) px$/,
    "设备内存不足以处理 $1 px 的分块：改用 $2 px 的分块检测",
  ],
];

const CLAIMS: Pattern[] = [
  [/^(at most .+ sure): (\d+) of (\d+) boards missed, bound (\S+) %$/, "@1：$3 块板中漏检 $2 块，上限 $4%"],
  [/^at most (\S+) % of boards with a defect have one missed, (\S+) % sure$/, "含缺陷的板中出现漏检的不超过 $1%，置信度 $2%"],
  [
    /^at most (\S+) % of boards with a defect of class (.+) have one missed, (\S+) % sure$/,
    "含 $2 缺陷的板中出现漏检的不超过 $1%，置信度 $3%",
  ],
  [/^calibrated for (.+) (\S+|\(none stated\)), this inspection has (.+)$/, "校准时@1为 @2，本次检测为 @3"],
  [/^\(none stated\)$/, "（未说明）"],
  [/^model version$/, "模型版本"],
  [/^reference mode$/, "样板方式"],
  [/^with reference$/, "有样板"],
  [/^without reference$/, "无样板"],
  [/^recipe$/, "配方"],
  [/^camera$/, "相机"],
];

const SPOT: Pattern[] = [
  [/^class (.+) reached (\S+) here, its threshold is (\S+): it was called, or (.+) kept it out$/, "$1 在此处得分 $2，阈值 $3：已报出，或被忽略区、最小尺寸或相邻报点排除"],
  [/^class (.+) reached (\S+) here, its threshold is (\S+): no threshold that is of use would have called it$/, "$1 在此处得分 $2，阈值 $3：任何可用的阈值都不会报出"],
  [/^class (.+) reached (\S+) here, its threshold is ([^:\s]+)$/, "$1 在此处得分 $2，阈值 $3"],
  [/^the (\d+) px level speaks most for it: without it the score is (\S+)$/, "$1 px 层级最支持报出：去掉后得分为 $2"],
  [/^the (\d+) px level speaks against it: without it the score is (\S+)$/, "$1 px 层级反对报出：去掉后得分为 $2"],
  [/^no level alone changes the score by as much as (\S+)$/, "单独去掉任一层级，得分变化都不到 $1"],
  [/^the fusion takes (\d+) % from the (\d+) px level here$/, "融合在此处有 $1% 取自 $2 px 层级"],
  [/^the spot differs from the reference in (\d+) % of its pixels$/, "此处有 $1% 的像素与黄金样板不同"],
  [/^the reference could not be laid under the board, so the scores are those without one$/, "黄金样板无法与板对齐，因此得分为无样板时的得分"],
];

const MODELS: Pattern[] = [
  [/^\(service\)$/, "（服务）"],
  [/^\(command line: (.+)\)$/, "（命令行：$1）"],
  [/^made from (\S+)$/, "来源：$1"],
  [/^the checkpoint that is shipped$/, "随附的模型"],
  [/^started with --checkpoint$/, "启动时由 --checkpoint 指定"],
  [/^(\S+) was rolled back$/, "$1 已回退"],
  [/^(\S+) was rolled back: (.+)$/, "$1 已回退：$2"],
  [/^on (\d+)% of the boards$/, "对 $1% 的板运行"],
  [/^ended$/, "已结束"],
  [/^ended: (promoted|rolled back|started): it no longer runs beside$/, "已结束：生产版本有变动"],
  [/^promoted by override of (.+?): (.+); the gate (.+)$/, "由 $1 越过门禁上线：$2；门禁@3"],
  [/^promoted by override: (.+); the gate (.+)$/, "越过门禁上线：$1；门禁@2"],
  [/^could not judge: (.+)$/, "无法评判：@1"],
  [/^was not asked: no acceptance board$/, "未评判：没有验收板"],
  [/^model version (\S+) cannot be loaded: (.+)$/, "模型版本 $1 无法载入：$2"],
  [/^name$/, "名称"],
  [/^parent$/, "来源版本"],
  [/^added$/, "添加时间"],
  [/^classes$/, "类别"],
  [/^needs a reference$/, "需要黄金样板"],
  [/^data fingerprint$/, "数据指纹"],
  [/^git revision$/, "代码版本"],
  [/^file, MB$/, "文件大小（MB）"],
  [/^yes$/, "是"],
  [/^no$/, "否"],
  [/^threshold of (.+), (with reference|without reference)$/, "$1 的阈值，@2"],
  [/^validation, (with reference|without reference), (.+)$/, "验证集，@1，@2"],
  [/^ap shipped$/, "AP"],
  [/^f deployed$/, "F 值"],
  [/^mean ap same class$/, "各类别平均 AP"],
  [/^AP of (.+), before$/, "$1 的 AP，之前"],
  [/^AP of (.+), after$/, "$1 的 AP，之后"],
  [/^(\d+) (drawn|old) boards held back$/, "留出 $1 块@2板"],
  [/^(\d+) (drawn|old) boards held back, and (\d+) boards with new defects held back$/, "留出 $1 块@2板和 $3 块含新缺陷的板"],
  [/^drawn$/, "生成的"],
  [/^old$/, "旧类别的"],
  [/^not promoted: (.+)$/, "未上线：@1"],
  [/^disk full: (.+)$/, "磁盘已满：$1"],
  [/^out of memory: (.+)$/, "内存不足：$1"],
  [/^no example of (.+) is left on verified boards to train on$/, "已复判的板上没有可供学习的 $1 样本"],
];

const PATTERNS = [...REASONS, ...ALIGNMENT, ...PICTURE, ...LINE, ...CLAIMS, ...SPOT, ...MODELS].sort(byLength);

/** Longest pattern first: "reference: scaled from ..." before "reference: ...". */
function byLength([one]: Pattern, [other]: Pattern): number {
  return other.source.length - one.source.length;
}

export function inChinese(text: string): string {
  for (const [pattern, chinese] of PATTERNS) {
    const found = pattern.exec(text);
    if (found) {
      return chinese.replace(/([$@])(\d)/g, (_, sign: string, at: string) => {
        const part = found[Number(at)]!;
        return sign === "@" ? inChinese(part) : part;
      });
    }
  }
  return text;
}
