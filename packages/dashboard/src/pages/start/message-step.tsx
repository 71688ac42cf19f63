import { api } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { Code } from '../../components/data/code.js';
import { Problem } from '../../components/feedback/problem.js';
import { Button } from '../../components/layout/button.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { may } from '../../session/access.js';
import { newKey } from '../../session/new-key.js';
import { keyLine, postLine, SAMPLE } from './commands.js';
import { Step } from './step.js';

/** Sends the first message: through the API, with commands to copy, or from a source. */
export function MessageStep({
  isDone,
  onSent,
}: {
  readonly isDone: boolean;
  readonly onSent: () => void;
}) {
  const sending = useAction(async () => {
    await api().events.create(SAMPLE);
    onSent();
  });
  const key = newKey.value?.projectId === projectId.value ? newKey.value?.key : undefined;
  return (
    <Step number={2} title="A message" isDone={isDone}>
      {key ? (
        <>
          <p>
            Post one over the API, with the key of the project. Keep the key now: it is shown this
            once.
          </p>
          <Code isRaw label="Key" text={keyLine(key)} />
        </>
      ) : (
        <ApiKey />
      )}
      <Code isRaw label="Post a message" text={postLine(location.origin, projectId.value ?? '')} />
      {sending.error && <Problem error={sending.error} />}
      <div class="form-actions">
        {may('member') && (
          <Button onPress={sending.run} isRunning={sending.isRunning}>
            Or send it from here
          </Button>
        )}
        <span class="step-or">
          Messages in a Kafka topic, an SQS queue, or webhooks of others?{' '}
          <a href={projectHref('/sources/new')}>Connect a source</a>, and write one there.
        </span>
      </div>
    </Step>
  );
}

/** Says where to get the key for the commands; creates one for users who are allowed to. */
function ApiKey() {
  const making = useAction(async () => {
    const { key } = await api().apiKeys.create({ name: 'First message', role: 'member' });
    newKey.value = { projectId: projectId.value ?? '', key };
  });
  return (
    <>
      <p>
        Post one over the API. The line takes an API key from <code>GATEWAY_KEY</code>: the one of{' '}
        <code>gateway bootstrap</code>, or one of this project.
      </p>
      {making.error && <Problem error={making.error} />}
      {may('admin') && (
        <div>
          <Button onPress={making.run} isRunning={making.isRunning}>
            Create a key
          </Button>
        </div>
      )}
    </>
  );
}
