import { linksOf } from '@gateway/core/config';
import { sealer } from '@gateway/core/crypto';
import type { OpenIntake } from '@gateway/ingest/intake';
import { createApp } from './api/app.js';
import { openContext } from './api/context.js';
import { ingestRouter } from './ingest/ingest.js';
import { inTurn, listenerOptions } from './listener.js';
import { routes } from './routes/index.js';

/** With the server's authentication and limits. */
export const openIntake: OpenIntake = (parts, lifecycle) => {
  const { config } = parts;
  const seals = sealer(config.encryption_key);
  const context = openContext(
    {
      ...parts,
      seals,
      links: linksOf(config),
    },
    lifecycle,
  );
  const bringing = routes.filter(({ createsEvents }) => createsEvents);
  const app = createApp(bringing, { ingest: ingestRouter(context) }, context).callback();
  const prefixes = ['/api/', '/ingest/'].map((path) => config.root_path + path);
  return {
    listenerOptions: listenerOptions(config),
    takes: (path) => prefixes.some((prefix) => path.startsWith(prefix)),
    handle: inTurn((request, response) => void app(request, response)),
  };
};
