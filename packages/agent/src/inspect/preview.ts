import type { Config } from '@gateway/core/config';
import { silentLog } from '@gateway/core/logging';
import { Sandbox, type TransformResult } from '@gateway/sandbox';
import type { ReadyEvent } from '../commit/event-writer.js';
import { decide } from './dry-run.js';
import { parseTransformOutput } from '../ingest/parse-message.js';
import { sandboxLimits } from '../ingest/sandbox-limits.js';
import { Transformer } from '../ingest/transformer.js';

/** Why a message would be quarantined. */
export interface PreviewedRefusal {
  readonly code: string;
  readonly reason: string;
}

/** One object that the function returned. */
export interface PreviewedResult {
  /** Its JSON text. */
  readonly json: string;
  /** The event that it would become; null when the message is refused. */
  readonly event: ReadyEvent | null;
  /** Of this result alone. */
  readonly refusal: PreviewedRefusal | null;
}

/** What would become of a message of a source that has this function. */
export interface Preview {
  readonly kind: 'accepted' | 'dropped' | 'refused';
  /** What the message would be quarantined with; null unless it is refused. One bad result refuses the message. */
  readonly refusal: PreviewedRefusal | null;
  /** What the function returned, an array object by object. */
  readonly results: readonly PreviewedResult[];
  /** What it wrote to its console. */
  readonly logs: readonly string[];
  /** Milliseconds of the call; null when it was not called. */
  readonly durationMs: number | null;
}

/** A message as a broker would hand it over. */
export interface PreviewedMessage {
  readonly body: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Runs functions on messages as an agent would, and changes nothing. */
export interface Previewer {
  /** @throws SandboxError when functions cannot be run on this machine */
  preview(functionText: string, message: PreviewedMessage): Promise<Preview>;
  /** Ends the sandbox. */
  close(): Promise<void>;
}

/** A previewer with the limits and the sandbox of an agent; its processes start with the first preview and stay. */
export function openPreviewer({ transform, ingest }: Pick<Config, 'transform' | 'ingest'>): Previewer {
  const sandbox = new Sandbox({ ...sandboxLimits({ transform }), processes: 1 });

  return {
    async preview(bodyFunction, { body, headers = {} }) {
      let called: TransformResult | undefined;
      let failure: unknown;
      const run: Sandbox['run'] = async (fn, payloads) => {
        try {
          const results = await sandbox.run(fn, payloads);
          called = results[0];
          return results;
        } catch (error) {
          // An agent tries again for as long as it takes; whoever stands before a terminal is told.
          failure = error;
          transformer.stop();
          throw error;
        }
      };
      const transformer = new Transformer({ sandbox: { run }, log: silentLog });
      const source = { projectId: '', id: '', bodyFunction };
      const message = { coordinates: '', timestamp: Date.now(), body, headers };
      const options = { transformer, maxMessageBytes: ingest.max_message_bytes };
      const ready = await decide(source, message, options).catch((error: unknown) => {
        throw failure ?? error;
      });
      const told = { logs: called?.logs ?? [], durationMs: wasCalled(called) ? called.durationMs : null };
      if (ready === 'dropped') return { kind: 'dropped', refusal: null, results: [], ...told };
      const { events, quarantined } = ready;
      const results = textsOf(called).map((json, at) => {
        const read = parseTransformOutput(json);
        return { json, event: events[at] ?? null, refusal: 'code' in read ? read : null };
      });
      if (!quarantined) return { kind: 'accepted', refusal: null, results, ...told };
      const { code, reason } = quarantined;
      return { kind: 'refused', refusal: { code, reason }, results, ...told };
    },
    close: () => sandbox.close(),
  };
}

/** A text that is no function is refused before there is something to call. */
function wasCalled(result: TransformResult | undefined): result is TransformResult {
  return result !== undefined && !(result.kind === 'refused' && (result.code === 'not_compiled' || result.code === 'no_transform'));
}

function textsOf(result: TransformResult | undefined): readonly string[] {
  if (result?.kind === 'object') return [result.json];
  return result?.kind === 'array' ? result.items : [];
}
