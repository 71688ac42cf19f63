import type { Endpoint } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { useAction } from '../../api/change.js';
import { NewSecret } from '../../components/data.js';
import { Problem } from '../../components/feedback.js';
import { ButtonLink, Page, Panel } from '../../components/layout.js';
import { TextField } from '../../components/field.js';
import { Form } from '../../components/form.js';
import type { Value } from '../../components/schema-form/schema.js';
import { isPortal, projectHref } from '../../router/location.js';
import { typesOf } from '../subscriptions/subscription-draft.js';
import { VerifySample } from './verify.js';
import { EndpointFields, fieldsOf } from './form/endpoint-fields.js';

interface Created {
  readonly endpoint: Endpoint;
  readonly problem?: Error;
}

export default function EndpointNew() {
  const [value, setValue] = useState<Value>({});
  const [typed, setTyped] = useState('*');
  const [created, setCreated] = useState<Created>();
  const create = useAction(async () => {
    const endpoint = await api().endpoints.create(fieldsOf(value));
    const types = typesOf(typed);
    setCreated({ endpoint, ...(types.length > 0 ? await subscribed(endpoint, types) : {}) });
  });
  if (created) return <CreatedPage {...created} />;
  return (
    <Page title="New endpoint" above={<a href={projectHref('/endpoints')}>Endpoints</a>}>
      <Panel title="What is sent where">
        <Form
          action={create}
          verb="Create"
          actions={<ButtonLink href={projectHref('/endpoints')}>Cancel</ButtonLink>}
        >
          <EndpointFields value={value} onChange={setValue} error={create.error}>
            <TextField
              label="Event types"
              isMono
              hint={
                <>
                  That it subscribes to. <code>*</code>: every type. <code>order.*</code>: every
                  type below order. Several with commas; empty for none.
                </>
              }
              value={typed}
              onChange={setTyped}
            />
          </EndpointFields>
        </Form>
      </Panel>
    </Page>
  );
}

/**
 * Subscribes a new endpoint. Returns an error instead of throwing it, because the endpoint exists
 * and its secret must be shown.
 */
async function subscribed(
  { uid, name }: Endpoint,
  types: readonly string[],
): Promise<{ problem?: Error }> {
  try {
    await api().subscriptions.create({
      name,
      endpoint_id: uid,
      filter_config: { event_types: types },
    });
    return {};
  } catch (error) {
    return { problem: error as Error };
  }
}

function CreatedPage({ endpoint: { uid, name, secrets }, problem }: Created) {
  return (
    <Page title={name} above={<a href={projectHref('/endpoints')}>Endpoints</a>}>
      <Panel title="The endpoint was created">
        <NewSecret what="secret" secret={secrets[0]?.value ?? ''}>
          <p>
            {isPortal.value ? (
              'Your server verifies with it that a request comes from us.'
            ) : (
              <>
                The receiver verifies with it that requests come from here: <code>verify()</code> of
                the client, or a library of Standard Webhooks.
              </>
            )}
          </p>
        </NewSecret>
        {isPortal.value && <VerifySample />}
        {problem && (
          <Problem error={problem}>
            <p>
              It is subscribed to nothing yet.{' '}
              <a href={projectHref(`/subscriptions/new?endpoint=${uid}`)}>Subscribe it</a>
            </p>
          </Problem>
        )}
        <div class="form-actions">
          <ButtonLink kind="main" href={projectHref(`/endpoints/${uid}?test=1`)}>
            Send a test event
          </ButtonLink>
          <ButtonLink href={projectHref(`/endpoints/${uid}`)}>Open the endpoint</ButtonLink>
        </div>
      </Panel>
    </Page>
  );
}
