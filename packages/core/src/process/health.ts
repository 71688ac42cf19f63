import { maskUrls } from '../logging/redaction.js';

export type ComponentState = 'ok' | 'degraded' | 'down';

export interface HealthComponent {
  readonly name: string;
  readonly state: ComponentState;
  readonly reason?: string;
  readonly since: Date;
}

/** Reported states of a process's components. */
export class Health {
  readonly #components = new Map<string, HealthComponent>();

  /** Returns true if the state or the reason changed. */
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

  of(name: string): HealthComponent | undefined {
    return this.#components.get(name);
  }

  /** The worst state; `ok` without components. */
  get state(): ComponentState {
    const states = new Set([...this.#components.values()].map(({ state }) => state));
    return states.has('down') ? 'down' : states.has('degraded') ? 'degraded' : 'ok';
  }

  get components(): HealthComponent[] {
    return [...this.#components.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

/** Returns the worst state per kind of component, without source names, reasons and times. */
export function statesOnly(
  components: readonly HealthComponent[],
): Pick<HealthComponent, 'name' | 'state'>[] {
  const worst = new Map<string, ComponentState>();
  for (const wanted of ['ok', 'degraded', 'down'] as const) {
    for (const { name, state } of components)
      if (state === wanted) worst.set(name.replace(/^source .*/s, 'source'), state);
  }
  return [...worst].map(([name, state]) => ({ name, state }));
}

/** Returns a line for readiness probes: `ready`, or the failing components, `down` first. */
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

/** Failing statements: since when, the latest error and its time. */
export interface OngoingFailure {
  readonly since: Date;
  readonly error: unknown;
  readonly at: Date;
}

/** Adds a failure. */
export function failAgain(
  before: OngoingFailure | null | undefined,
  error: unknown,
): OngoingFailure {
  const at = new Date();
  return { since: before?.since ?? at, error, at };
}

/** Returns the latest failure. */
export function latestOf(all: readonly OngoingFailure[]): OngoingFailure | undefined {
  return all.reduce<OngoingFailure | undefined>(
    (latest, one) => (latest && latest.at > one.at ? latest : one),
    undefined,
  );
}
