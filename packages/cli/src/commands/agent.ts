import { command } from '../app/gateway-command.js';

export default command({
  description:
    'Reads the sources, takes events over HTTP, and delivers them. Run `migrate up` first. SIGTERM, SIGINT and SIGHUP drain the ' +
    'agent: work in flight is settled first. A second signal exits at once.',
  examples: ['gateway agent', 'gateway agent --mode retry --consumers 100'],
  async run({ resolve }) {
    const resolved = resolve();
    const [{ runProcess }, { startAgent }, { openIntake }] = await Promise.all([
      import('../app/process.js'),
      import('@gateway/agent'),
      import('@gateway/server/intake'),
    ]);
    await runProcess(resolved, {
      name: 'gateway-agent',
      start: (parts) => startAgent({ ...parts, intake: openIntake }),
    });
  },
});
