import { changedSecretFiles } from '../config/given-value.js';
import { maskUrls } from '../logging/redaction.js';

export type ComponentState = 'ok' | 'degraded' | 'down';

export interface HealthComponent {
  readonly name: string;
  readonly state: ComponentState;
  readonly reason?: string;
  readonly since: Date;
}

export class Health {
  readonly #components = new Map<string, HealthComponent>();

  /** Returns whether the state or reason changed. */
  report(name: string, state: ComponentState, given?: string, since: Date = new Date()): boolean {
    const reason = given && maskUrls(given);
    const known = this.#components.get(name);
    if (known?.state === state && known.reason === reason) return false;
    const began = known?.state === state ? known.since : since;
    this.#components.set(name, {
      name,
      state,
      ...(reason === undefined ? {} : { reason }),
      since: began,
    });
    return true;
  }

  forget(name: string): void {
    this.#components.delete(name);
  }

  /** This process reads secrets only at its start; reports those whose files have changed. */
  reportSecrets(): void {
    const changed = changedSecretFiles();
    if (changed.length === 0) this.forget('secrets');
    else
      this.report(
        'secrets',
        'degraded',
        `the files of ${changed.join(', ')} have changed since this process started; restart it to use them`,
      );
  }

  of(name: string): HealthComponent | undefined {
    return this.#components.get(name);
  }

  /** The worst state of all components; `ok` if there are none. */
  get state(): ComponentState {
    const states = new Set([...this.#components.values()].map(({ state }) => state));
    return states.has('down') ? 'down' : states.has('degraded') ? 'degraded' : 'ok';
  }

  get components(): HealthComponent[] {
    return [...this.#components.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

/** The worst state of each kind, without names of sources and shards, reasons or times. */
export function statesOnly(
  components: readonly HealthComponent[],
): Pick<HealthComponent, 'name' | 'state'>[] {
  const worst = new Map<string, ComponentState>();
  for (const wanted of ['ok', 'degraded', 'down'] as const) {
    for (const { name, state } of components)
      if (state === wanted) worst.set(name.replace(/^(source|shard) .*/s, '$1'), state);
  }
  return [...worst].map(([name, state]) => ({ name, state }));
}

/** For readiness probes. Failing components that are down come first. */
export function readySentence(
  ready: boolean,
  isDraining: boolean,
  components: readonly HealthComponent[],
): string {
  const troubles = [
    ...components.filter(({ state }) => state === 'down'),
    ...components.filter(({ state }) => state === 'degraded'),
  ];
  const told = troubles.map(
    ({ name, state, since, reason }) =>
      `${name} is ${state} since ${since.toISOString()}${reason ? `: ${reason}` : ''}`,
  );
  const all = [...(isDraining ? ['it is draining'] : []), ...told]
    .map((text) => text.replace(/\.$/, ''))
    .join('; ');
  return `${ready ? 'ready' : 'not ready'}${all === '' ? '' : `${ready ? ', but ' : ': '}${all}`}`;
}

/** Not ended yet. */
export interface OngoingFailure {
  readonly since: Date;
  readonly error: unknown;
  readonly at: Date;
}

/** Without a failure before, starts a new one. */
export function failAgain(
  before: OngoingFailure | null | undefined,
  error: unknown,
): OngoingFailure {
  const at = new Date();
  return { since: before?.since ?? at, error, at };
}

export function latestOf(all: readonly OngoingFailure[]): OngoingFailure | undefined {
  return all.reduce<OngoingFailure | undefined>(
    (latest, one) => (latest && latest.at > one.at ? latest : one),
    undefined,
  );
}
