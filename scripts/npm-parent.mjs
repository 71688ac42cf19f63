// @ts-check
/**
 * Under npm there is a shell between npm and us: who sends SIGTERM to npm ends the two of them, and nobody tells us. So when our parent is
 * gone we send it to ourselves. (Ctrl-C in a terminal reaches all three.)
 */
export function endWithNpm() {
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch); // once: a second signal would cut the drain short
    process.kill(process.pid, 'SIGTERM');
  }, 500);
  watch.unref();
}
