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

  /** Sets the state of a component, which appears with its first report. True when the state or the reason changed. */
  report(name: string, state: ComponentState, reason?: string): boolean {
    const known = this.#components.get(name);
    if (known?.state === state && known.reason === reason) return false;
    const since = known?.state === state ? known.since : new Date();
    this.#components.set(name, { name, state, ...(reason === undefined ? {} : { reason }), since });
    return true;
  }

  /** Removes a component that is no more. */
  forget(name: string): void {
    this.#components.delete(name);
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
