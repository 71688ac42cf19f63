/** Browser storage, which can be refused in a frame. */
interface Store {
  get(key: string): string | null;
  set(key: string, value: string): void;
  remove(key: string): void;
}

/** The browser's storage; if it is refused, memory that lasts as long as the page. */
export function storeOf(kind: 'localStorage' | 'sessionStorage'): Store {
  const memory = new Map<string, string>();
  const attempt = <Result>(work: (it: Storage) => Result, otherwise: () => Result): Result => {
    try {
      return work(globalThis[kind]);
    } catch {
      return otherwise();
    }
  };
  return {
    get: (key) =>
      attempt(
        (it) => it.getItem(key),
        () => memory.get(key) ?? null,
      ),
    set: (key, value) =>
      attempt(
        (it) => it.setItem(key, value),
        () => void memory.set(key, value),
      ),
    remove: (key) =>
      attempt(
        (it) => it.removeItem(key),
        () => void memory.delete(key),
      ),
  };
}
