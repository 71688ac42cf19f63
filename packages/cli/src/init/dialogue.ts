import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';

/** Questions on the terminal, asked on standard error. */
export interface Dialogue {
  ask(question: string): Promise<string>;
  /** Does not echo the input. */
  askHidden(question: string): Promise<string>;
  /** An empty answer is true. */
  confirm(question: string): Promise<boolean>;
  close(): void;
}

/** Undefined unless a person can see the questions and answer them. */
export function openDialogue(): Dialogue | undefined {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  let isHidden = false;
  const output = new Writable({
    write(shown: Buffer, _encoding, done) {
      if (!isHidden) process.stderr.write(shown);
      done();
    },
  });
  const lines = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 });
  // Ctrl-C and Ctrl-D close it, and nothing has been written yet.
  const interrupted = () => {
    process.stderr.write('\n');
    process.exit(130);
  };
  lines.once('close', interrupted);
  const ask = async (question: string) => (await lines.question(question)).trim();
  return {
    ask,
    async askHidden(question) {
      process.stderr.write(question);
      isHidden = true;
      const answer = await lines.question('');
      isHidden = false;
      process.stderr.write('\n');
      return answer;
    },
    async confirm(question) {
      for (;;) {
        const answer = (await ask(`${question} [Y/n] `)).toLowerCase();
        if (['', 'y', 'yes'].includes(answer)) return true;
        if (['n', 'no'].includes(answer)) return false;
      }
    },
    close() {
      lines.off('close', interrupted);
      lines.close();
    },
  };
}
