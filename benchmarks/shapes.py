"""Time candidate shapes of the hierarchy against each other and against a rival given as an ONNX file.

    python benchmarks/shapes.py --rival yolo11n.onnx --rival yolo11s.onnx

All candidates are untrained, take one 640x640 board with its reference, and run in turn within one process,
so that the ratios hold whatever else the machine does; times are medians. A rival's ONNX file is made
elsewhere: its package is no dependency. Needs the `export` extra (OpenVINO).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino
import torch
from torch.utils.flop_counter import FlopCounterMode

from inspect_vit.config import ModelConfig, load_config, validate
from inspect_vit.model import HierarchicalViT, ModelOutput

ROOT = Path(__file__).resolve().parent.parent

SHAPES: dict[str, tuple[str, dict[str, object]]] = {
    "nano": ("nano", {}),
    "nano, 2 fine blocks": ("nano", {"fine": {"depth": 2}}),
    "nano, no fine block": ("nano", {"fine": {"depth": 0}}),
    "nano, middle window 20": ("nano", {"middle": {"window": 20}}),
    "nano, middle depth 3": ("nano", {"middle": {"depth": 3}}),
    "nano, no envelopes": ("nano", {"envelope_radii": []}),
    "tiny": ("tiny", {}),
}


class Flat(torch.nn.Module):
    """Tensors in, tensors out, reference present: what an exporter wants."""

    def __init__(self, model: HierarchicalViT) -> None:
        super().__init__()
        self.model = model

    def forward(self, board: torch.Tensor, reference: torch.Tensor) -> tuple[torch.Tensor, ...]:
        output: ModelOutput = self.model(board, reference, torch.ones(1))
        return output.head.centre_logits, output.head.distances, output.head.mask_logits, output.gate_shares


def build(base: str, changes: dict[str, object]) -> HierarchicalViT:
    tree = load_config(ROOT / "configs" / f"{base}.yaml", ModelConfig).model_dump()
    for index, level in enumerate(("fine", "middle", "coarse")):
        tree["levels"][index].update(changes.pop(level, {}))
    return HierarchicalViT(validate(tree | changes, ModelConfig, source=base)).eval()


def openvino_runner(source: object, inputs: list[np.ndarray], precision: str) -> Callable[[], object]:
    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": 2, "NUM_STREAMS": 1}
    request = core.compile_model(source, "CPU", settings).create_infer_request()
    return lambda: request.infer(inputs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rival", type=Path, action="append", default=[], help="ONNX file, input 1x3x640x640"
    )
    parser.add_argument("--rounds", type=int, default=15, help="timed passes of each candidate")
    options = parser.parse_args()
    torch.set_num_threads(2)
    capable = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    precision = "bf16" if capable else "f32"
    picture = torch.randint(256, (1, 1, 640, 640), dtype=torch.uint8)
    runners: dict[str, dict[str, Callable[[], object]]] = {}
    gflops: dict[str, float] = {}
    params: dict[str, float] = {}
    for name, (base, changes) in SHAPES.items():
        model = Flat(build(base, dict(changes)))
        with torch.inference_mode(), FlopCounterMode(display=False) as counter:
            model(picture, picture)
        gflops[name] = counter.get_total_flops() / 1e9
        params[name] = sum(p.numel() for p in model.parameters()) / 1e6
        converted = openvino.convert_model(model, example_input=(picture, picture))
        runners[name] = {
            "torch": lambda model=model: model(picture, picture),
            "openvino": openvino_runner(converted, [picture.numpy()] * 2, precision),
        }
    for path in options.rival:
        runners[path.stem] = {
            "openvino": openvino_runner(str(path), [np.zeros((1, 3, 640, 640), np.float32)], precision)
        }
    times: dict[tuple[str, str], list[float]] = {}
    with torch.inference_mode():
        # One engine after the other: torch's threads spin on after a pass and would slow the other engine.
        for engine, turn in itertools.product(("openvino", "torch"), range(options.rounds + 2)):
            for name, engines in runners.items():
                if run := engines.get(engine):
                    start = time.perf_counter()
                    run()
                    if turn >= 2:
                        times.setdefault((name, engine), []).append(time.perf_counter() - start)
    medians = {key: statistics.median(values) * 1e3 for key, values in times.items()}
    base_ms = medians[(options.rival[0].stem if options.rival else "nano", "openvino")]
    print(f"openvino {precision}, torch float32, 2 threads, {options.rounds} alternating rounds, medians")
    print("| shape | M params | GFLOPs | openvino ms | ratio | torch ms |\n|---|---|---|---|---|---|")
    for name in runners:
        torch_ms = medians.get((name, "torch"))
        print(
            f"| {name} | {params.get(name, float('nan')):.2f} | {gflops.get(name, float('nan')):.2f} | "
            f"{medians[(name, 'openvino')]:.1f} | {medians[(name, 'openvino')] / base_ms:.2f} | "
            f"{'' if torch_ms is None else f'{torch_ms:.1f}'} |"
        )


if __name__ == "__main__":
    main()
