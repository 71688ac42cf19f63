import os from 'node:os';

export interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
}

/** The default pool of 500 is what two cores suggest. */
const PER_CORE = 250;
/** What a request may keep in memory: an event of the largest default size, its response and its connection. */
const BYTES_EACH = 2 * 1024 * 1024;

/** How many requests an agent has under way at a time: the setting `consumer_pool_size`, where 0 means what the machine or its container suggests. */
export function consumersOf(setting: number, machine: Machine = thisMachine()): number {
  if (setting > 0) return setting;
  return Math.max(1, Math.min(PER_CORE * machine.cores, Math.floor(machine.memoryBytes / BYTES_EACH)));
}

function thisMachine(): Machine {
  // Without a limit it is 0, undefined or larger than the memory, depending on Node and the control groups.
  const limit = process.constrainedMemory() || Infinity;
  return { cores: os.availableParallelism(), memoryBytes: Math.min(limit, os.totalmem()) };
}
