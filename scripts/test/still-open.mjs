// @ts-check
// Loaded into every test process: when the runner asks, because the process should have ended, it tells what it waits for.
process.on('SIGUSR2', () => {
  const counts = new Map();
  for (const resource of process.getActiveResourcesInfo()) counts.set(resource, (counts.get(resource) ?? 0) + 1);
  const open = [...counts].map(([resource, count]) => `${count} ${resource}`).join(', ');
  process.stderr.write(`\nstill open in this process: ${open || 'nothing'}\n`);
});
