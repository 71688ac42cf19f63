/**
 * Waits for `work`, at most `ms` milliseconds. Work that settles later goes unheard; it is not cancelled.
 *
 * @param sentence message of the error
 * @throws Error with the code ETIMEDOUT when the time is up first, which `networkReason` explains
 */
export async function withTimeout<T>(work: Promise<T>, ms: number, sentence = 'no answer in time'): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(Object.assign(new Error(sentence), { code: 'ETIMEDOUT' })), ms);
  });
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}
