export type ComponentState = 'ok' | 'degraded' | 'down';

export interface Component {
  readonly name: string;
  readonly state: ComponentState;
  /** Why it is not ok, for a person. */
  readonly reason?: string;
  /** When it came into this state. */
  readonly since: Date;
}

/** How the parts of a process stand, as each last said. */
export class Health {
  readonly #components = new Map<string, Component>();

  /**
   * Sets the state of a component, which appears with its first report.
   *
   * @param since when it came into this state, for whoever knows that better than the first report of it
   * @returns true when the state or the reason changed
   */
  report(name: string, state: ComponentState, reason?: string, since: Date = new Date()): boolean {
    const known = this.#components.get(name);
    if (known?.state === state && known.reason === reason) return false;
    const began = known?.state === state ? known.since : since;
    this.#components.set(name, { name, state, ...(reason === undefined ? {} : { reason }), since: began });
    return true;
  }

  /** Removes a component that is no more. */
  forget(name: string): void {
    this.#components.delete(name);
  }

  /** How a component stands; undefined before its first report. */
  of(name: string): Component | undefined {
    return this.#components.get(name);
  }

  /** The worst of the states, `ok` when there are none. */
  get state(): ComponentState {
    const states = new Set([...this.#components.values()].map(({ state }) => state));
    return states.has('down') ? 'down' : states.has('degraded') ? 'degraded' : 'ok';
  }

  /** The components by name. */
  get components(): Component[] {
    return [...this.#components.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

/** The answer to "can it work", in one line: `ready`, or which part is not well, since when, and why; parts that are down stand first. */
export function readySentence(ready: boolean, isDraining: boolean, components: readonly Component[]): string {
  const troubles = [...components.filter(({ state }) => state === 'down'), ...components.filter(({ state }) => state === 'degraded')];
  const told = troubles.map(
    ({ name, state, since, reason }) => `${name} is ${state} since ${since.toISOString()}${reason ? `: ${reason}` : ''}`,
  );
  const all = [...(isDraining ? ['it is draining'] : []), ...told].map((text) => text.replace(/\.$/, '')).join('; ');
  return `${ready ? 'ready' : 'not ready'}${all === '' ? '' : `${ready ? ', but ' : ': '}${all}`}`;
}
