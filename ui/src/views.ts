// What a tab is.

import type { Chart } from "./chart";

export interface View {
  name: string;
  build: (panel: HTMLElement) => void | Promise<void>;
  /** Its picture, where it has one. */
  chart?: Chart;
}
