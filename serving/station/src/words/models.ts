import { modelsDeeds } from "./models_deeds";
import { modelsVersions } from "./models_versions";

export const models = {
  en: { ...modelsVersions.en, ...modelsDeeds.en },
  zh: { ...modelsVersions.zh, ...modelsDeeds.zh },
};
