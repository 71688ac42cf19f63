import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { own } from '../../support/services.js';

export interface CloudEventMessage {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly base64: string;
}

interface Outcome {
  readonly made: readonly CloudEventMessage[];
  readonly read: readonly {
    readonly attributes: Readonly<Record<string, unknown>>;
    readonly data: unknown;
  }[];
}

const here = fileURLToPath(new URL('.', import.meta.url));

/** The SDKs for Python and Go. Each makes messages, and reads requests. */
export async function sdks(): Promise<
  readonly { readonly name: string; run(requests: readonly object[]): Outcome }[]
> {
  const python = await own.python('cloudevents==1.11.0');
  const go = await own.go();
  const programs = [
    { name: 'Python', program: python, args: ['sdk.py'] },
    { name: 'Go', program: go, args: ['run', '.'] },
  ];
  return programs.map(({ name, program, args }) => ({
    name,
    run(requests) {
      const input = JSON.stringify(requests);
      const { status, stdout, stderr } = spawnSync(program, args, {
        cwd: here,
        input,
        encoding: 'utf8',
        timeout: 300_000,
      });
      if (status !== 0) throw new Error(`the SDK for ${name} failed: ${stderr}`);
      return JSON.parse(stdout) as Outcome;
    },
  }));
}
