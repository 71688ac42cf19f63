import { argument, command, switchFlag } from '../../app/gateway-command.js';

export default command({
  description:
    'Projects that are on the shard stay there and keep working. At least one shard must take new projects.',
  examples: ['gateway shards drain default', 'gateway shards drain default --undo'],
  args: { name: argument('Name of the shard.') },
  flags: { undo: switchFlag('Give the shard new projects again.') },
  async run({ args: { name }, flags: { undo }, api, log }) {
    await api(({ shards }) => shards.update(name, { is_draining: !undo }));
    log(`the shard ${name} gets ${undo ? 'new projects again' : 'no new projects'}`);
  },
});
