import type { Source } from '@gateway/client';
import { api } from '../../api/client.js';
import { toast } from '../../components/feedback/toast.js';
import { ActionButton } from '../../components/form/action-button.js';
import { ConfirmButton } from '../../components/form/confirm.js';
import { localTime } from '../../format/time.js';
import { navigate } from '../../router/location.js';
import { projectPath } from '../../router/project-path.js';
import { may } from '../../session/access.js';

export function SourceActions({
  source,
  onChange,
}: {
  readonly source: Source;
  readonly onChange: () => void;
}) {
  const { uid, name, type, is_disabled: isDisabled, paused_at: pausedAt } = source;
  const turn = async () => {
    if (isDisabled) {
      await api().sources.update(uid, { is_disabled: false });
      toast('The source is enabled.');
    } else if (pausedAt) {
      const { resumes_at: resumesAt } = await api().sources.resume(uid);
      toast(
        resumesAt
          ? `Its agents paused it: it resumes at ${localTime(resumesAt)}.`
          : 'The source is resumed.',
      );
    } else {
      await api().sources.pause(uid);
      toast(
        `The source is paused. ${type === 'http' ? 'Requests to its URL are told to come again.' : 'Its messages wait with their broker.'}`,
      );
    }
    onChange();
  };
  const word = isDisabled ? 'Enable' : pausedAt ? 'Resume' : 'Pause';
  if (!may('member')) return null;
  return (
    <>
      <ConfirmButton
        label="Delete…"
        title={`Delete ${name}?`}
        verb="Delete"
        work={async () => {
          await api().sources.delete(uid);
          toast(`${name} is deleted.`);
          navigate(projectPath('/sources'));
        }}
      >
        <p>
          {type === 'http'
            ? 'Its URL answers 404 from now on.'
            : 'Agents stop reading it; messages stay with their broker.'}{' '}
          Its events and quarantined messages are kept.
        </p>
      </ConfirmButton>
      <ActionButton keys="p" work={turn}>
        {word}
      </ActionButton>
    </>
  );
}
