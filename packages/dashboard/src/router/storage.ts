interface Store {
  get(key: string): string | null;
  set(key: string, value: string): void;
  remove(key: string): void;
}

/**
 * If the browser denies access, as it may in a frame, values are kept in memory while the page is
 * open.
 */
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
