import { argument, command } from '../../app/gateway-command.js';

export default command({
  description:
    'Refused while a project is on the shard, or has events there from before a move. The tables stay in its database: drop them yourself.',
  examples: ['gateway shards remove big'],
  args: { name: argument('Name of the shard.') },
  async run({ args: { name }, api, log }) {
    await api(({ shards }) => shards.delete(name));
    log(`removed the shard ${name}`);
  },
});
