import { argument, command, idOf } from '../../app/gateway-command.js';

export default command({
  description:
    'The project takes no events for seconds, until the command ends. Agents then copy its earlier events in the background, the newest first: `shards list` shows how ' +
    'far they are. If the command is stopped, an agent goes on with the move. The name of the shard that the project has calls off a move that does not end.',
  examples: ['gateway shards move 019ab3c4-5d6e-7f70-9123-456789abcdef big'],
  args: { project: argument('Id of the project.'), shard: argument('Name of the shard.') },
  async run({ args: { project, shard: to }, api, log, note }) {
    const id = idOf('the project', project);
    const { shard: from } = await api(async (it) => {
      const before = await it.projects.get(id);
      await it.project(id).shards.moveProject(to);
      return before;
    });
    if (from === to) note(`the project is on the shard ${to} and stays there`);
    else log(`the project is on the shard ${to} now; agents copy its earlier events from ${from}`);
  },
});
