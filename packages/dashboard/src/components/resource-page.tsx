import type { ComponentChildren } from 'preact';
import type { Resource } from '../api/read.js';
import { Loaded } from './feedback.js';
import { Page } from './layout.js';

export function ResourcePage<Data>({
  resource,
  title,
  name,
  list,
  actions,
  tabs,
  children,
}: {
  resource: Resource<Data>;
  title: (data: Data) => string;
  /** The title until the resource is read. */
  name: string;
  list?: string;
  actions?: (data: Data) => ComponentChildren;
  tabs?: ComponentChildren;
  children: (data: Data) => ComponentChildren;
}) {
  const { data } = resource;
  const isRead = data !== undefined;
  return (
    <Page title={isRead ? title(data) : name} list={list} actions={isRead && actions?.(data)}>
      {tabs}
      <Loaded resource={resource} lines={12}>
        {children}
      </Loaded>
    </Page>
  );
}
