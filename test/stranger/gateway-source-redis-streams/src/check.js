import { PluginError } from '@gateway/plugin';
import { connect, explained } from './client.js';

/** Checks that the stream exists and is readable. */
export async function check(connection, { signal }) {
  const client = await connect(connection, signal);
  const leave = () => client.disconnect();
  signal.addEventListener('abort', leave, { once: true });
  try {
    const type = await client.type(connection.stream);
    if (type === 'stream') return;
    const what =
      type === 'none' ? 'There is no stream' : `There is a ${type}, and no stream, named`;
    throw new PluginError(`${what} ${connection.stream} on Redis at ${connection.address}.`, {
      fix: 'Check stream.',
    });
  } catch (error) {
    throw explained(error, connection.address);
  } finally {
    signal.removeEventListener('abort', leave);
    client.disconnect();
  }
}
