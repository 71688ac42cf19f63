// @ts-check
/**
 * npm runs this process in a shell. SIGTERM to npm ends npm and the shell, but does not reach this
 * process, so it sends itself SIGTERM once its parent is gone. (Ctrl-C in a terminal reaches all
 * three.)
 */
export function endWithNpm() {
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch); // a second signal would cut the drain short
    process.kill(process.pid, 'SIGTERM');
  }, 500);
  watch.unref();
}
