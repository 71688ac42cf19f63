import type { Config } from '@gateway/core/config';
import { LoopShares, ProjectPace } from '@gateway/core/process';
import type { Message } from '@gateway/plugin';
import { Sandbox } from '@gateway/sandbox';
import type { QuarantinedMessage, ReplayableMessage } from '@gateway/store/quarantine';
import type { AgentContext } from '../config/agent-context.js';
import type { ReadyMessage } from '@gateway/ingest/message/ready-message';
import { Pipeline } from '@gateway/ingest/pipeline';
import { sandboxLimits, Transformer } from '@gateway/ingest/transform/transformer';
import type { ReadyEvent } from '@gateway/ingest/message/ready-message';
import type { IngestSource } from '@gateway/ingest/message/ingest-source';

/** Why a message is rejected. A stored code may be of another version of the gateway. */
export type StoredRejection = Pick<QuarantinedMessage, 'code' | 'reason'>;

export type DryRun =
  | { readonly kind: 'accepted'; readonly events: readonly ReadyEvent[] }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused'; readonly refusal: StoredRejection };

const WORKS = { key: 'works', text: 'function transform(payload) { return payload; }' };

export interface DryRunnerOptions extends Pick<AgentContext, 'log'> {
  readonly config: Pick<Config, 'ingest' | 'transform'>;
  /** Stays open when the runner is closed. */
  readonly sandbox?: Pick<Sandbox, 'run'>;
}

/** A dry runner with the limits and the sandbox of an agent. Concurrent messages are transformed in batches. */
export function openDryRunner({ config, log, sandbox: given }: DryRunnerOptions) {
  const own = given ? undefined : new Sandbox(sandboxLimits(config));
  const sandbox = given ?? own!;
  const transformer = new Transformer({ sandbox, log });
  const { max_message_bytes: maxMessageBytes } = config.ingest;
  let check: Promise<unknown> | undefined;

  return {
    /** Transforms and validates a message; changes nothing. Rejects with a SandboxError when functions cannot run here. */
    async dryRun(message: ReplayableMessage): Promise<DryRun> {
      const { projectId, sourceId, bodyFunction: text, coordinates, occurredAtMs: timestamp, body, headers } = message;
      const bodyFunction = text?.trim() ? text : null;
      // An agent waits for a sandbox that cannot start; a command reports it.
      if (bodyFunction !== null) await (check ??= sandbox.run(WORKS, ['{}']));
      const source = { projectId, id: sourceId, bodyFunction };
      const ready = await transformAndParse(source, { coordinates, timestamp, body, headers }, { transformer, maxMessageBytes });
      if (ready === 'dropped') return { kind: 'dropped' };
      if (!ready.quarantined) return { kind: 'accepted', events: ready.events };
      const { code, reason } = ready.quarantined;
      return { kind: 'refused', refusal: { code, reason } };
    },
    async close(): Promise<void> {
      transformer.stop();
      await own?.close();
    },
  };
}

/** Runs one message through the pipeline up to its commit, without throttle and metrics. Rejects when the transformer was stopped first. */
export function transformAndParse(
  source: IngestSource,
  message: Message,
  { transformer, maxMessageBytes }: { transformer: Transformer; maxMessageBytes: number },
): Promise<ReadyMessage | 'dropped'> {
  return new Promise((resolve, reject) => {
    const throttle = { unlimited: true, take: (wanted: number) => Promise.resolve(wanted) };
    const shares = { pace: new ProjectPace(0), loopShares: new LoopShares(0) };
    const pipeline = new Pipeline({ throttle, transformer, eventWriter: { push: resolve }, maxMessageBytes, ...shares });
    const settled = pipeline.handle(() => source)(message);
    settled.then((outcome) => (outcome === 'dropped' ? resolve(outcome) : reject(new Error(`not decided: ${outcome}`))), reject);
  });
}
