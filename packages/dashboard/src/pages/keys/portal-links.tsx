import type { CreatedPortalLink, PortalLink } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { api, type Draft, given, useDraft, useList } from '../../api/index.js';
import {
  Button,
  Checkbox,
  type TableColumns,
  DialogButton,
  FilterBar,
  FormDialog,
  NewSecret,
  Page,
  TextField,
  textsOf,
  Time,
  timeCell,
  toast,
  useForm,
} from '../../components/index.js';
import { param, query, setQuery } from '../../router/location.js';
import { may } from '../../session/session.js';
import { ExpiryField, InUse, RevokeButton, StateBadge } from './in-use.js';
import { expiryOf, LINK_EXPIRIES, newExpiry, stateOf } from './key-ring.js';

/**
 * For a project or one owner. The query parameter `new`, set by the endpoint page's link, opens the
 * form.
 */
export default function PortalLinksPage() {
  const owner = param('search');
  const list = useList<PortalLink>(`portal links ${owner}`, (page, options) =>
    api().portalLinks.list({ ...given({ ownerId: owner }), ...page }, options),
  );
  const mayChange = may('member');
  const columns: TableColumns<PortalLink> = {
    Name: ({ name }) => name,
    Owner: ({ owner_id: id }) => <code>{id}</code>,
    Permissions: ({ can_manage_endpoint: manages }) =>
      manages ? 'manage endpoints' : 'read and resend',
    State: (row) => <StateBadge row={row} />,
    'Last used': timeCell('last_used_at', 'relative', 'never'),
    Expires: timeCell('expires_at'),
    Actions: mayChange && ((row) => <Actions row={row} />),
  };
  return (
    <Page
      title="Portal links"
      actions={
        mayChange && (
          <Button kind="main" keys="n" onPress={() => setQuery({ new: '1' })}>
            New portal link
          </Button>
        )
      }
    >
      <p class="muted">
        Each link opens the portal of one owner for anyone who has its URL. Expired and revoked
        links are deleted after a week.
      </p>
      <FilterBar searchHint="Owner ID" hasTime={false} />
      <InUse
        list={list}
        label="Portal links"
        none={owner ? `No active portal links of ${owner}` : 'No active portal links'}
        columns={columns}
      >
        <p>
          A portal link shows a customer the endpoints with their owner id, and the deliveries to
          them, without an account.{' '}
          {mayChange
            ? 'Create one here, or from your backend when a customer opens your webhooks page.'
            : 'Ask a member of the project to create one.'}
        </p>
      </InUse>
      {mayChange && query.value.has('new') && (
        <NewLink owner={owner} onClose={() => setQuery({ new: undefined }, { replace: true })} />
      )}
    </Page>
  );
}

function Actions({ row }: { row: PortalLink }) {
  if (stateOf(row) === 'revoked') return null;
  return (
    <>
      <DialogButton
        label={`Edit ${row.name}`}
        dialog={(close) => <EditLink link={row} onClose={close} />}
      >
        Edit…
      </DialogButton>
      <DialogButton
        label={`New URL for ${row.name}`}
        dialog={(close) => <NewUrl link={row} onClose={close} />}
      >
        New URL…
      </DialogButton>
      <RevokeButton row={row} revoke={(id) => api().portalLinks.revoke(id)}>
        The URL stops showing data of <code>{row.owner_id}</code> immediately, even where it is
        open; on other servers within a second.
      </RevokeButton>
    </>
  );
}

interface LinkDialog {
  readonly onClose: () => void;
}

function NewLink({ owner, ...dialog }: LinkDialog & { owner: string }) {
  const draft = useDraft({ name: owner, owner_id: owner, can_manage_endpoint: false });
  const make = (expires_at: string) =>
    api().portalLinks.create({
      ...draft.values,
      name: draft.values.name.trim(),
      owner_id: draft.values.owner_id.trim(),
      expires_at,
    });
  return (
    <UrlDialog {...dialog} title="New portal link" verb="Create link" make={make}>
      {(error) => (
        <>
          <TextField
            label="Owner ID"
            hint="The link shows only endpoints with this owner id."
            {...textsOf(draft, error)('owner_id')}
            isRequired
            hasFocus
          />
          <LinkFields draft={draft} error={error} />
        </>
      )}
    </UrlDialog>
  );
}

function NewUrl({ link, ...dialog }: LinkDialog & { link: PortalLink }) {
  const make = (expires_at: string) => api().portalLinks.refreshToken(link.uid, { expires_at });
  return (
    <UrlDialog {...dialog} title={`New URL for ${link.name}`} verb="Create URL" make={make}>
      {() => <p>The current URL stops working immediately, even where it is open.</p>}
    </UrlDialog>
  );
}

function EditLink({ link, onClose }: LinkDialog & { link: PortalLink }) {
  const { name, can_manage_endpoint } = link;
  const form = useForm({ name, can_manage_endpoint }, async (values) => {
    const saved = await api().portalLinks.update(link.uid, {
      ...values,
      name: values.name.trim(),
    });
    toast(`${saved.name} was changed.`);
    onClose();
  });
  return (
    <FormDialog title={`Edit ${name}`} verb="Save" action={form} onClose={onClose}>
      <p>
        This link opens the portal of <code>{link.owner_id}</code>. Its URL stays the same, and
        changed permissions apply immediately.
      </p>
      <LinkFields draft={form} error={form.error} />
    </FormDialog>
  );
}

function LinkFields({
  draft,
  error,
}: {
  draft: Pick<Draft<Pick<PortalLink, 'name' | 'can_manage_endpoint'>>, 'values' | 'set'>;
  error: Error | undefined;
}) {
  return (
    <>
      <TextField
        label="Name"
        hint="Shown in this list and in the audit log."
        {...textsOf(draft, error)('name')}
        isRequired
      />
      <Checkbox
        label="Manage endpoints"
        hint="Allows creating, changing, pausing and deleting endpoints, and subscribing them to events without an owner."
        isOn={draft.values.can_manage_endpoint}
        onChange={draft.set('can_manage_endpoint')}
      />
    </>
  );
}

function UrlDialog({
  title,
  verb,
  make,
  onClose,
  children,
}: LinkDialog & {
  title: string;
  verb: string;
  make: (expiresAt: string) => Promise<CreatedPortalLink>;
  children: (error: Error | undefined) => ComponentChildren;
}) {
  const [made, setMade] = useState<CreatedPortalLink>();
  const form = useForm({ expiry: newExpiry(LINK_EXPIRIES) }, async ({ expiry }) => {
    setMade(await make(expiryOf(expiry) ?? ''));
  });
  return (
    <FormDialog
      title={title}
      verb={verb}
      action={form}
      onClose={onClose}
      done={
        made && (
          <NewSecret what={made.url === null ? 'token' : 'URL'} secret={made.url ?? made.token}>
            <p>
              This link opens the portal of <code>{made.owner_id}</code> for anyone who has it. The
              link expires <Time at={made.expires_at} look="relative" />.
            </p>
          </NewSecret>
        )
      }
    >
      {children(form.error)}
      <ExpiryField
        options={LINK_EXPIRIES}
        value={form.values.expiry}
        onChange={form.set('expiry')}
        error={form.error}
      />
    </FormDialog>
  );
}
