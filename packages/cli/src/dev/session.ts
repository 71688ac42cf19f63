import type { Log } from '@gateway/core/logging';
import { failureOf, printed } from '../app/failure.js';
import type { HeldFolder } from './hold-folder.js';
import type { Instance } from './instance.js';
import { openLogs } from './log-views.js';
import type { Observer } from './observe.js';
import { paint, timeOfDay } from '../output/paint.js';
import { LOOPBACK, type Ports } from './ports.js';
import { Problem } from './problem.js';
import { followSample } from './sample-way.js';
import { QUEUE_NAME, sampleMessage } from './sample.js';
import { shownNext, shownPlaces, shownRequest } from './show.js';
import { Sightings } from './sightings.js';
import { SourceStates } from './source-states.js';
import { addTopic, type Topic } from './topics.js';
import { followTraffic, type Traffic } from './traffic.js';

interface SessionParts {
  readonly ports: Ports;
  readonly held: HeldFolder;
  readonly log: Log;
  readonly print: (line: string) => void;
}

const SOURCE_MS = 20_000;

/** What a person sees of an instance: the sample, the places, and then the traffic. */
export class Session {
  readonly #parts: SessionParts;
  readonly #sightings = new Sightings();
  readonly #states = new SourceStates();
  #traffic: Traffic | undefined;
  #isClosed = false;

  /** Watches the sources. */
  readonly observer: Observer = {
    onState: (source, state, reason) => {
      if (!this.#states.report(source, state, reason) || !this.#traffic) return;
      if (state === 'failing') this.#tellSource('failing', `the ${source} cannot be read: ${reason}`);
      else this.#tellSource('reading', `the ${source} is read again`);
    },
    onMessage: (source, message) => this.#sightings.see(source, message) ?? (() => undefined),
  };

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /**
   * Shows a new instance, or with `isOnce` any, the way of a message; adds the topics; and resolves when traffic is followed, with `isOnce` before.
   *
   * @throws Problem with `isOnce`, when the sample or a topic failed
   */
  async show(instance: Instance, { isOnce, topics }: { isOnce: boolean; topics: readonly Topic[] }): Promise<void> {
    const { print } = this.#parts;
    print(`\n${paint('bold', 'Ready')} after ${(performance.now() / 1000).toFixed(2)} s.`);
    const isNew = instance.setup.made.length > 0;
    const failures: unknown[] = [];
    const attempt = async (work: Promise<void>) => {
      await work.catch((error: unknown) => {
        if (isOnce) failures.push(error);
        else print(printed(failureOf(error, { command: 'dev', flags: [], commands: [] })).trimEnd());
      });
    };
    if (isOnce || isNew) await attempt(this.#sample(instance));
    if (!isOnce && !this.#isClosed) await this.#follow(instance);
    for (const topic of topics) await attempt(this.#topic(instance, topic));
    if (failures.length > 0) throw failures[0];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#traffic?.close();
  }

  /** Tells where everything is, and from now on what is delivered. */
  async #follow(instance: Instance): Promise<void> {
    const { print, ports, log, held } = this.#parts;
    // It listens before the screen says that it does.
    const traffic = await followTraffic({ logs: openLogs(instance.api, instance.setup.projectId), inboxUrl: held.inbox.url, log, print });
    held.inbox.onReceipt((receipt) => traffic.received(receipt));
    this.#traffic = traffic;
    const lines = [...shownPlaces(instance, ports), '', ...shownNext(instance), '', 'Deliveries follow, a line each. Ctrl-C stops.', ''];
    print('');
    for (const line of lines) print(line);
    if (this.#isClosed) await traffic.close();
  }

  #tellSource(state: 'failing' | 'reading', text: string): void {
    const word = state === 'failing' ? paint('red', 'failing    ') : paint('green', 'reading    ');
    this.#parts.print(`${paint('dim', timeOfDay(Date.now()))}  ${word}  ${text}`);
  }

  async #sample({ queue, api, setup }: Instance): Promise<void> {
    const { print, ports, held } = this.#parts;
    const source = `queue ${QUEUE_NAME}`;
    const state = await this.#states.settled(source, SOURCE_MS);
    if (state?.state !== 'reading') {
      throw new Problem(
        `the ${source} is not read: ${state?.reason ?? 'the agent has not connected to it; is its source deleted or disabled?'}`,
        {
          fix: 'mend the source "Orders queue", or start anew with --fresh',
        },
      );
    }
    print('\nA message on its way:\n');
    const receipt = await followSample(sampleMessage('A-1001'), {
      queue,
      sightings: this.#sightings,
      logs: openLogs(api, setup.projectId),
      setup,
      inbox: held.inbox,
      complaints: () => complaints(ports.agent),
      print,
    });
    print('\nWhat the inbox got:\n');
    for (const line of shownRequest(receipt)) print(line);
  }

  async #topic({ api }: Instance, topic: Topic): Promise<void> {
    const { held } = this.#parts;
    const source = `topic ${topic.name}`;
    const isNew = await addTopic(api, held.folder.memory, topic, () => this.#states.forget(source));
    const state = await this.#states.settled(source, SOURCE_MS);
    if (state?.state !== 'reading') {
      throw new Problem(`the ${source} on ${topic.brokers.join(',')} is not read: ${state?.reason ?? 'nothing answered in time'}`, {
        fix: 'see that the broker runs and that its address is right, then start again with --kafka',
      });
    }
    this.#tellSource('reading', `the ${source} on ${topic.brokers.join(',')} is ${isNew ? 'a source now' : 'a source already'}`);
  }
}

/** What the agent says is not well with it. */
async function complaints(port: number): Promise<string> {
  try {
    const answer = await fetch(`http://${LOOPBACK}:${port}/healthz?ready`, { signal: AbortSignal.timeout(3_000) });
    const { data } = (await answer.json()) as { data: { components: readonly { name: string; state: string; reason?: string }[] } };
    return data.components.flatMap(({ name, state, reason }) => (state === 'ok' ? [] : [`${name}: ${reason ?? state}`])).join('; ');
  } catch (error) {
    return `the agent does not answer: ${(error as Error).message}`;
  }
}
