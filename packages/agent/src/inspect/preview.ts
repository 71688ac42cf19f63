import type { Config } from '@gateway/core/config';
import { Sandbox, type TransformResult } from '@gateway/sandbox';
import { parseTransformOutput } from '@gateway/ingest/message/parse-message';
import { sandboxLimits } from '@gateway/ingest/transform/transformer';
import type { ReadyEvent } from '@gateway/ingest/message/ready-message';
import type { StoredRejection } from './dry-run.js';
import { runOnce } from './run-once.js';

export interface Preview {
  readonly kind: 'accepted' | 'dropped' | 'refused';
  /** Why the message would be quarantined: one bad result rejects it. Null unless it is `refused`. */
  readonly refusal: StoredRejection | null;
  /** What the function returned, an array object by object. */
  readonly results: readonly { readonly json: string; readonly event: ReadyEvent | null; readonly refusal: StoredRejection | null }[];
  readonly logs: readonly string[];
  /** Milliseconds of the call; null when the function was not called. */
  readonly durationMs: number | null;
}

/** A message to run a function on. */
export interface Sample {
  readonly body: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly projectId?: string;
}

export type Previewer = ReturnType<typeof openPreviewer>;

/** A previewer with the limits and the sandbox of an agent. Its process starts with the first preview and stays. */
export function openPreviewer(
  { transform, ingest }: Pick<Config, 'transform' | 'ingest'>,
  sandbox: Pick<Sandbox, 'run' | 'close'> = new Sandbox({ ...sandboxLimits({ transform }), processes: 1 }),
) {
  return {
    /**
     * @param bodyFunction null: the message is parsed as it stands, and is the only result
     * @param given `projectId`: its functions share a part of the sandbox
     * @throws SandboxError when functions cannot run on this machine
     */
    async preview(bodyFunction: string | null, given: Sample): Promise<Preview> {
      const { body, headers = {}, projectId = '' } = given;
      const source = { projectId, id: projectId, bodyFunction };
      const message = { coordinates: '', timestamp: Date.now(), body, headers };
      const { ready, called } = await runOnce(source, message, { sandbox, maxMessageBytes: ingest.max_message_bytes });
      const call = callOf(called);
      if (ready === 'dropped') return { kind: 'dropped', refusal: null, results: [], ...call };
      const { events, quarantined } = ready;
      const texts = bodyFunction === null && !quarantined ? [textOf(body)] : textsOf(called);
      const results = texts.map((json, at) => {
        const parsed = parseTransformOutput(json);
        return { json, event: events[at] ?? null, refusal: 'code' in parsed ? parsed : null };
      });
      if (!quarantined) return { kind: 'accepted', refusal: null, results, ...call };
      const { code, reason } = quarantined;
      return { kind: 'refused', refusal: { code, reason }, results, ...call };
    },
    close: () => sandbox.close(),
  };
}

/** What is told of a call. */
export function callOf(called: TransformResult | undefined): Pick<Preview, 'logs' | 'durationMs'> {
  const isCompiled = !(called?.kind === 'refused' && (called.code === 'not_compiled' || called.code === 'no_transform'));
  return { logs: called?.logs ?? [], durationMs: called && isCompiled ? called.durationMs : null };
}

/** Without its byte order mark. */
function textOf(body: Uint8Array): string {
  return new TextDecoder().decode(body);
}

function textsOf(result: TransformResult | undefined): readonly string[] {
  if (result?.kind === 'object') return [result.json];
  return result?.kind === 'array' ? result.items : [];
}
