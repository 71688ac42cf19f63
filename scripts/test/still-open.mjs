// @ts-check
// Loaded into every test process. On SIGUSR2, sent when the process should have ended, prints the
// resources that keep it alive.
process.on('SIGUSR2', () => {
  const counts = new Map();
  for (const resource of process.getActiveResourcesInfo())
    counts.set(resource, (counts.get(resource) ?? 0) + 1);
  const open = [...counts].map(([resource, count]) => `${count} ${resource}`).join(', ');
  process.stderr.write(`\nstill open in this process: ${open || 'nothing'}\n`);
});
