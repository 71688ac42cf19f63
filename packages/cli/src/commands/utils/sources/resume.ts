import { command, findIn, idArgument, projectFlag } from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';

export default command({
  description:
    'Agents read the source again at once. If its function keeps exceeding its limits, the source is paused again. A changed ' +
    'function resumes its source automatically. `gateway utils sources list --paused` shows ids and reasons.',
  examples: ['gateway utils sources resume 019ab3c4-5d6e-7f70-9123-456789abcdef'],
  flags: projectFlag,
  args: idArgument('Id of the source.'),
  async run({ args: { id }, flags, api, log, note }) {
    const { found, project, resumed } = await api(async (all) => {
      const it = await findIn(all, flags, ({ sources }) => sources.get(id));
      const isPaused = it.found.paused_at !== null;
      return { ...it, resumed: isPaused ? await it.api.sources.resume(id) : undefined };
    });
    const name = `the source ${escapeLine(found.name)} of the project ${escapeLine(project.name)}`;
    if (!resumed) note(`${name} is not paused; nothing was changed`);
    else if (resumed.resumes_at !== null) log(`${name} resumes at ${resumed.resumes_at}`);
    else log(`resumed ${name}${found.is_disabled ? ', which is disabled and still not read' : ''}`);
  },
});
