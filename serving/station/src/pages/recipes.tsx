// Recipes: all of them, or the one that the address names.

import { RecipeList } from "../recipes/list";
import { RecipePage } from "../recipes/recipe";
import { place } from "../route";
import "../inspect/choosing.css";
import "../recipes/recipes.css";
import "../recipes/zones.css";

export function Recipes() {
  const name = place.value.subject;
  return name ? <RecipePage key={name} name={name} /> : <RecipeList />;
}
