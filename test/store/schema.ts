import type pg from 'pg';

/** The type of `database().rows`. */
export type Rows = <Row extends pg.QueryResultRow>(
  sql: string,
  values?: readonly unknown[],
) => Promise<Row[]>;

/**
 * Excludes partitions, which equal their table and change daily, and the bookkeeping of migrations.
 */
const OURS = `(select oid from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and relname not like 'gateway_migrations%')`;

const DAY = String.raw`'_\d{8}$'`;

/** Describes a database's schema as text, from its catalog: for comparison and review. */
export async function describeSchema(rows: Rows): Promise<string> {
  const part = async (title: string, sql: string) => {
    const lines = (await rows<{ line: string }>(sql)).map(({ line }) => line);
    return lines.length === 0 ? [] : [`-- ${title}`, ...lines, ''];
  };
  const parts = [
    await part(
      'types',
      `select t.typname || ': ' || string_agg(e.enumlabel, ', ' order by e.enumsortorder) as line
       from pg_type t join pg_enum e on e.enumtypid = t.oid where t.typnamespace = 'public'::regnamespace group by t.typname order by t.typname`,
    ),
    await part(
      'columns',
      `select c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end
              || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as line
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
       where c.oid in ${OURS}
       order by c.relname, a.attname`,
    ),
    await part(
      'partitions',
      `select c.relname || ' of ' || i.inhparent::regclass || ' ' || pg_get_expr(c.relpartbound, c.oid) as line
       from pg_class c join pg_inherits i on i.inhrelid = c.oid
       where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname !~ ${DAY} order by c.relname`,
    ),
    await part(
      'constraints',
      `select conrelid::regclass || ' ' || pg_get_constraintdef(oid) as line from pg_constraint
       where contype <> 'n' and conrelid in ${OURS}
       order by 1`,
    ),
    await part(
      'indexes',
      `select pg_get_indexdef(i.indexrelid) as line from pg_index i where i.indrelid in ${OURS} order by 1`,
    ),
    await part(
      'triggers',
      `select pg_get_triggerdef(t.oid) as line from pg_trigger t where not t.tgisinternal and t.tgrelid in ${OURS} order by 1`,
    ),
    await part(
      'functions',
      `select pg_get_functiondef(oid) as line from pg_proc where pronamespace = 'public'::regnamespace order by proname`,
    ),
  ];
  return parts.flat().join('\n');
}
