import { argument, command, idOf } from '../../app/gateway-command.js';

export default command({
  description:
    'For a project that has no events yet, or never had any; `shards move` moves any other. ' +
    'A new project gets a shard by itself.',
  examples: ['gateway shards assign 019ab3c4-5d6e-7f70-9123-456789abcdef big'],
  args: { project: argument('Id of the project.'), shard: argument('Name of the shard.') },
  async run({ args: { project, shard: to }, api, log, note }) {
    const id = idOf('the project', project);
    const { shard: from } = await api(async (it) => {
      const before = await it.projects.get(id);
      await it.project(id).shards.moveProject(to, { must_be_empty: true });
      return before;
    });
    if (from === to) note(`the project is on the shard ${to}; nothing was changed`);
    else log(`the project is on the shard ${to} now, and was on ${from}`);
  },
});
