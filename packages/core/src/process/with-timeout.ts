/** Waits for `work`, which is not cancelled, at most `ms`; then throws an Error with the code ETIMEDOUT and this sentence. */
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
