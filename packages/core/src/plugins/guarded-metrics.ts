import type { Metrics } from '@gateway/plugin';
import { withTimeout } from '../process/timing.js';
import { asPlugin, kindOf } from './plugin-faults.js';

const EXPOSE_MS = 10_000;
const FUNCTIONS = ['add', 'set', 'observe', 'clear', 'expose'] as const;

/**
 * Recording never throws: errors go to `failed`. `expose` rejects if the backend returns no text in
 * time.
 * @throws Error if the backend lacks a function
 */
export function guardedMetrics(backend: Metrics, failed: (error: unknown) => void): Metrics {
  const missing = FUNCTIONS.find(
    (name) => typeof (backend as Metrics | undefined)?.[name] !== 'function',
  );
  if (missing !== undefined)
    throw new Error(`its \`start\` returns ${kindOf(backend)} without the function ${missing}`);
  const record = (work: () => unknown) => {
    try {
      const done = asPlugin(failed, work);
      // A rejection of an async function, which the contract does not allow.
      if (done instanceof Promise) done.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
  return {
    add: (...given) => record(() => backend.add(...given)),
    set: (...given) => record(() => backend.set(...given)),
    observe: (...given) => record(() => backend.observe(...given)),
    clear: (name) => record(() => backend.clear(name)),
    expose: async () => {
      const exposing = asPlugin(failed, async () => backend.expose());
      const late = `its exposition did not finish within ${EXPOSE_MS / 1000} s`;
      const { contentType, body } = await withTimeout(exposing, EXPOSE_MS, late);
      if (
        typeof body !== 'string' ||
        typeof contentType !== 'string' ||
        !/^[\x20-\x7e]+$/.test(contentType)
      )
        throw new Error('its exposition is not a text with a content type');
      return { contentType, body };
    },
    ...(backend.close && { close: () => asPlugin(failed, async () => backend.close?.()) }),
  };
}
