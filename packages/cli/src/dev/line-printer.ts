/** Lines that a terminal takes in a second; what is beyond is counted. */
const PER_SECOND = 20;

/** Prints lines of traffic, and keeps a flood from scrolling everything else away. */
export class LinePrinter {
  readonly #print: (line: string) => void;
  #printed = 0;
  #left = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  line(text: string): void {
    this.#timer ??= setInterval(() => this.#second(), 1000);
    if (this.#printed++ < PER_SECOND) this.#print(text);
    else this.#left++;
  }

  /** Says what was left out, and prints nothing more by itself. */
  close(): void {
    this.#second();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #second(): void {
    if (this.#left > 0) this.#print(`  … and ${this.#left} more in this second`);
    if (this.#printed === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#printed = 0;
    this.#left = 0;
  }
}
