import { Problem } from './problem.js';

/** The management API as a client sees it. Each call resolves with the `data` of the answer, or rejects with a `Refused`. */
export interface Api {
  get<T>(path: string): Promise<T>;
  post<T>(path: string, body: object): Promise<T>;
  put<T>(path: string, body: object): Promise<T>;
}

/** The API said no: its sentence and its remedy. */
export class Refused extends Problem {
  readonly status: number;

  constructor(status: number, message: string, fix: string) {
    super(message, { fix });
    this.status = status;
  }
}

const REQUEST_MS = 20_000;

/**
 * @param url of the API, `http://127.0.0.1:5005/api/v1`
 */
export function openApi(url: string, key: string): Api {
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const answer = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    const { message, fix, data } = (await answer.json()) as { message: string; fix?: string; data: T };
    if (!answer.ok) throw new Refused(answer.status, message, fix ?? 'read the log');
    return data;
  };
  return {
    get: (path) => call('GET', path),
    post: (path, body) => call('POST', path, body),
    put: (path, body) => call('PUT', path, body),
  };
}

/** The thing with this id; undefined when the API has no such thing, or there is no id yet. */
export async function lookUp<T>(api: Api, path: string, id: string | undefined): Promise<T | undefined> {
  if (id === undefined) return undefined;
  try {
    return await api.get<T>(`${path}/${id}`);
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return undefined;
    throw error;
  }
}
