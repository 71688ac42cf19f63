import type { AuditEntry } from '@gateway/client';
import { useRef } from 'preact/hooks';
import { accountApi, given, useList, useResource } from '../../api/index.js';
import {
  byName,
  Empty,
  FilterBar,
  FilterSelect,
  isOpenEnded,
  Page,
  Paged,
  shownRange,
  useRowKeys,
} from '../../components/index.js';
import { param, query } from '../../router/location.js';
import { may, projects } from '../../session/session.js';
import { nameOf } from '../people/members.js';
import {
  OrganisationSwitch,
  type ShownOrganisation,
  shownOrganisation,
} from '../people/organisation.js';
import { actionWords, RESOURCES } from './actions.js';
import { Entry } from './entry.js';

const LIVE_MS = 5_000;
const MEMBERS_MAX = 200;

export default function AuditPage() {
  const organisation = shownOrganisation();
  return (
    <Page
      title="Audit log"
      above={organisation?.name}
      actions={organisation && <OrganisationSwitch shown={organisation} />}
    >
      {organisation && may('admin', organisation.role) ? (
        <AuditLog key={organisation.uid} organisation={organisation} />
      ) : (
        <Empty title="You cannot view the audit log">
          <p>Only admins and owners of the organisation can view it.</p>
        </Empty>
      )}
    </Page>
  );
}

function AuditLog({ organisation: { uid: id } }: { organisation: ShownOrganisation }) {
  const list = useList<AuditEntry>(
    `audit log ${id} ${query.value.toString()}`,
    (page, options) => accountApi().auditLog.list(id, { ...auditFilter(), ...page }, options),
    isOpenEnded() ? LIVE_MS : undefined,
  );
  const entries = useRef<HTMLOListElement>(null);
  const focusRow = (index: number) => entries.current?.querySelectorAll('summary')[index]?.focus();
  const noteRow = useRowKeys(list.rows?.length ?? 0, focusRow);
  return (
    <>
      <FilterBar searchHint="Resource ID">
        <ActorFilter organisation={id} />
        <WhatFilter />
        <FilterSelect
          name="project"
          label="Project"
          options={[
            ['', 'Any project'],
            ...(projects.value ?? [])
              .filter((it) => it.organisation_id === id)
              .map(({ uid, name }) => [uid, name] as const),
          ]}
        />
      </FilterBar>
      <Paged list={list} lines={10}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty
              title={query.value.size > 0 ? 'No changes match these filters' : 'No changes yet'}
            />
          ) : (
            <ol class="audit" ref={entries}>
              {rows.map((entry, index) => (
                <Entry key={entry.uid} entry={entry} onFocus={() => noteRow(index)} />
              ))}
            </ol>
          )
        }
      </Paged>
    </>
  );
}

function auditFilter() {
  const [resourceId, actorId, action, projectId] = ['search', 'who', 'what', 'project'].map(param);
  return { ...shownRange(), ...given({ resourceId, actorId, action, projectId }) };
}

/** A URL parameter can also select a single action. */
function WhatFilter() {
  const all = Object.entries(RESOURCES).map(
    ([name, { word }]) => [`${name}.*`, `${word}s`] as const,
  );
  return (
    <FilterSelect
      name="what"
      label="Resource"
      options={[['', 'Any resource'], ...all]}
      other={actionWords(param('what'))}
    />
  );
}

/** A URL parameter can also select an API key or a former member. */
function ActorFilter({ organisation }: { organisation: string }) {
  const { data = [] } = useResource(`${organisation} members to filter by`, async (options) => {
    const { content } = await accountApi()
      .members.list(organisation, { perPage: MEMBERS_MAX }, options)
      .page();
    return byName(content.map((member) => ({ uid: member.uid, name: nameOf(member) })));
  });
  return (
    <FilterSelect
      name="who"
      label="Actor"
      options={[['', 'Any actor'], ...data]}
      other="Another actor"
    />
  );
}
