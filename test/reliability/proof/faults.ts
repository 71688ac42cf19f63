import type { Change } from './side-endpoints.js';
import type { StoreServer } from './stores.js';
import type { TestBed } from './test-bed.js';

export interface Fault {
  readonly kind: string;
  /** Describes the fault for the reader. */
  readonly what: string;
  /** Describes the repair. */
  readonly undone: string;
  readonly targets: readonly string[];
  /**
   * A freeze outlasts leases and sessions. An outage lasts as long as a restart; a stall is longer,
   * and blocks everything. A moment needs no repair.
   */
  readonly lasts: 'moment' | 'outage' | 'stall' | 'freeze';
  /** The test bed has it if a planned fault needs it. */
  readonly needs?: 'standby';
  readonly begin: (bed: TestBed, target: string) => unknown;
  readonly end: (bed: TestBed, target: string) => unknown;
}

/** Agents that run all the time, except for their faults. */
export const permanentAgents = ['agent-1', 'agent-2'] as const;
/** The agent that is started and stopped. */
export const temporaryAgent = 'agent-3';
/** A server and an agent of the next version, started and stopped together. */
export const otherVersion = ['newer-server', 'newer-agent'] as const;
/** Services behind a proxy each, by name. */
const services = ['postgres', 'redis', 'kafka', 'sqs', 'receiver'] as const;

const links = services.map((name) => `link to ${name}`);
const nothing = () => undefined;

/** Changes a side endpoint with held deliveries while a process dies. */
function changing(how: Change): Pick<Fault, 'undone' | 'targets' | 'lasts' | 'begin' | 'end'> {
  return {
    undone:
      'what died is started again; the change is asked for again only if it was not committed',
    targets: ['server', 'postgres', ...permanentAgents],
    lasts: 'outage',
    begin: async (bed, target) => {
      await bed.sideEndpoints.change(target, how);
      await (target === 'postgres' ? bed.postgres.crash() : bed.process(target).kill());
    },
    end: async (bed, target) => {
      await (target === 'postgres' ? bed.postgres.start() : bed.process(target).start());
      await bed.sideEndpoints.confirm(target);
    },
  };
}

export const faults: readonly Fault[] = [
  {
    kind: 'kill agent',
    what: 'SIGKILL',
    undone: 'another process takes its place',
    targets: permanentAgents,
    lasts: 'outage',
    begin: (bed, target) => bed.process(target).kill(),
    end: (bed, target) => bed.process(target).start(),
  },
  {
    kind: 'freeze agent',
    what: 'SIGSTOP',
    undone: 'SIGCONT',
    targets: permanentAgents,
    lasts: 'freeze',
    begin: (bed, target) => bed.process(target).freeze(),
    end: (bed, target) => bed.process(target).thaw(),
  },
  {
    kind: 'restart agent',
    what: 'SIGTERM; the consumer group and the leases go to the others',
    undone: 'another process takes its place',
    targets: permanentAgents,
    lasts: 'outage',
    begin: (bed, target) => bed.process(target).stop(),
    end: (bed, target) => bed.process(target).start(),
  },
  {
    kind: 'add agent',
    what: 'one more agent joins',
    undone: 'SIGTERM',
    targets: [temporaryAgent],
    lasts: 'freeze',
    begin: (bed, target) => bed.process(target).start(),
    end: (bed, target) => bed.process(target).stop(),
  },
  {
    kind: 'add agent and kill it',
    what: 'one more agent joins',
    undone: 'SIGKILL',
    targets: [temporaryAgent],
    lasts: 'freeze',
    begin: (bed, target) => bed.process(target).start(),
    end: (bed, target) => bed.process(target).kill(),
  },
  {
    kind: 'kill server',
    what: 'SIGKILL',
    undone: 'another process takes its place',
    targets: ['server'],
    lasts: 'outage',
    begin: (bed, target) => bed.process(target).kill(),
    end: (bed, target) => bed.process(target).start(),
  },
  {
    kind: 'freeze server',
    what: 'SIGSTOP',
    undone: 'SIGCONT',
    targets: ['server'],
    lasts: 'freeze',
    begin: (bed, target) => bed.process(target).freeze(),
    end: (bed, target) => bed.process(target).thaw(),
  },
  {
    kind: 'restart server',
    what: 'SIGTERM',
    undone: 'another process takes its place',
    targets: ['server'],
    lasts: 'outage',
    begin: (bed, target) => bed.process(target).stop(),
    end: (bed, target) => bed.process(target).start(),
  },
  {
    kind: 'run two versions',
    what: 'a server and an agent of the next version join, whose values in KV have another form; keys are used at both servers',
    undone: 'SIGTERM',
    targets: ['next version'],
    lasts: 'freeze',
    begin: (bed) =>
      Promise.all(
        otherVersion.map((name) => (bed.process(name).start(), bed.process(name).ready())),
      ),
    end: (bed) => Promise.all(otherVersion.map((name) => bed.process(name).stop())),
  },
  {
    kind: 'set clock',
    what: 'the wall clock of an agent is set an hour ahead or back',
    undone: 'it is set right',
    targets: permanentAgents,
    lasts: 'stall',
    begin: (bed, target) => bed.clock(target).set(target === 'agent-1' ? 3_600 : -3_600),
    end: (bed, target) => bed.clock(target).set(0),
  },
  {
    kind: 'crash Postgres',
    what: 'immediate shutdown: no checkpoint, every session ends in the middle',
    undone: 'started again; it recovers from its log',
    targets: ['postgres'],
    lasts: 'outage',
    begin: ({ postgres }) => postgres.crash(),
    end: ({ postgres }) => postgres.start(),
  },
  {
    kind: 'restart Postgres',
    what: 'fast shutdown',
    undone: 'started again',
    targets: ['postgres'],
    lasts: 'outage',
    begin: ({ postgres }) => postgres.stop(),
    end: ({ postgres }) => postgres.start(),
  },
  {
    kind: 'fail over Postgres',
    what: 'SIGKILL of the primary, whose commits wait for a standby',
    undone:
      'the standby is promoted; the other server becomes its standby, with a copy of its data',
    targets: ['postgres'],
    lasts: 'outage',
    needs: 'standby',
    begin: ({ postgres }) => postgres.killPrimary!(),
    end: ({ postgres }) => postgres.promoteStandby!(),
  },
  {
    kind: 'delete endpoint while something dies',
    what: 'SIGKILL, or a crash of Postgres, while a paused endpoint is deleted',
    ...changing('delete'),
  },
  {
    kind: 'activate endpoint while something dies',
    what: 'the same, while it is activated',
    ...changing('activate'),
  },
  {
    kind: 'restart Redis',
    what: 'SIGTERM',
    undone: 'started again with its data',
    targets: ['redis'],
    lasts: 'outage',
    begin: ({ redis }) => redis.stop(),
    end: ({ redis }) => redis.start(),
  },
  {
    kind: 'lose Redis',
    what: 'SIGKILL, and its files are deleted',
    undone: 'started again, empty',
    targets: ['redis'],
    lasts: 'outage',
    begin: ({ redis }) => redis.lose(),
    end: ({ redis }) => redis.start(),
  },
  {
    kind: 'flush Redis',
    what: 'FLUSHALL',
    undone: 'nothing to undo',
    targets: ['redis'],
    lasts: 'moment',
    begin: ({ redis }) => redis.flush(),
    end: nothing,
  },
  {
    kind: 'freeze Redis',
    what: 'SIGSTOP',
    undone: 'SIGCONT',
    targets: ['redis'],
    lasts: 'stall',
    begin: ({ redis }) => process.kill(redis.pid, 'SIGSTOP'),
    end: ({ redis }) => process.kill(redis.pid, 'SIGCONT'),
  },
  {
    kind: 'restart Kafka',
    what: 'SIGTERM',
    undone: 'started again with its data',
    targets: ['kafka'],
    lasts: 'outage',
    begin: ({ kafka }) => kafka.stop(),
    end: ({ kafka }) => kafka.start(),
  },
  {
    kind: 'freeze Kafka',
    what: 'SIGSTOP',
    undone: 'SIGCONT',
    targets: ['kafka'],
    lasts: 'stall',
    begin: ({ kafka }) => process.kill(kafka.pid, 'SIGSTOP'),
    end: ({ kafka }) => process.kill(kafka.pid, 'SIGCONT'),
  },
  {
    kind: 'grow topic',
    what: 'a partition is added, and written to at once',
    undone: 'it stays',
    targets: ['topic'],
    lasts: 'moment',
    begin: ({ topic }) => topic.grow(),
    end: nothing,
  },
  {
    kind: 'recreate topic',
    what: 'when everything is read, the topic is deleted and created anew; its messages have the positions and times of those before',
    undone: 'nothing to undo',
    targets: ['topic'],
    lasts: 'moment',
    begin: ({ topic }) => topic.recreate(),
    end: nothing,
  },
  {
    kind: 'freeze SQS',
    what: 'SIGSTOP; the emulator keeps nothing on disk, so it is not restarted',
    undone: 'SIGCONT',
    targets: ['sqs'],
    lasts: 'stall',
    begin: ({ sqs }) => process.kill(sqs.pid, 'SIGSTOP'),
    end: ({ sqs }) => process.kill(sqs.pid, 'SIGCONT'),
  },
  {
    kind: 'cut',
    what: 'every connection of the gateway to one service is ended, and new ones are refused',
    undone: 'new connections work',
    targets: links,
    lasts: 'outage',
    begin: (bed, target) => bed.link(target).cut(),
    end: (bed, target) => bed.link(target).restore(),
  },
  {
    kind: 'swallow',
    what: 'connections to one service stay open and new ones are accepted, and every byte is swallowed',
    undone: 'those connections are ended, new ones work',
    targets: links,
    lasts: 'stall',
    begin: (bed, target) => bed.link(target).freeze(),
    end: (bed, target) => bed.link(target).restore(),
  },
  {
    kind: 'half-open',
    what: 'what is open to one service stays open and is dead for ever, as after a fail-over; new connections work',
    undone: 'by the gateway alone',
    targets: links,
    lasts: 'moment',
    begin: (bed, target) => bed.link(target).freezeOpen(),
    end: nothing,
  },
  {
    kind: 'answer 500',
    what: 'the receiver answers every request with 500',
    undone: 'it answers 200',
    targets: ['receiver'],
    lasts: 'outage',
    begin: ({ receiver }) => receiver.answer(500),
    end: ({ receiver }) => receiver.answer(200),
  },
  {
    kind: 'hang receiver',
    what: 'the receiver takes every request and never answers',
    undone: 'it answers new requests with 200',
    targets: ['receiver'],
    lasts: 'stall',
    begin: ({ receiver }) => receiver.answer('hung'),
    end: ({ receiver }) => receiver.answer(200),
  },
];

/** The kinds of fault of a test bed: with several shards, also those of shards. */
export function faultsOf({ shards, stores, links: open, moves }: TestBed): readonly Fault[] {
  if (shards.length === 1) return faults;
  const others = stores.servers.filter(({ name }) => name !== 'postgres');
  const here = faults.filter(({ needs }) => needs !== 'standby' || stores.first?.promoteStandby);
  return [
    ...here.map((fault) => (fault.targets === links ? { ...fault, targets: open } : fault)),
    ...shardFaults(others, moves.names),
    ...(stores.rebalance ? [rebalance] : []),
  ];
}

const rebalance: Fault = {
  kind: 'rebalance',
  what: 'Citus moves all schemas away from the last worker',
  undone: 'it gets its share',
  targets: ['citus'],
  lasts: 'moment',
  begin: (bed) => bed.rebalance('empty'),
  end: (bed) => bed.rebalance('share'),
};

function shardFaults(servers: readonly StoreServer[], projects: readonly string[]): Fault[] {
  const serverOf = (target: string) => servers.find(({ name }) => name === target)!;
  const targets = servers.map(({ name }) => name);
  return [
    {
      kind: 'crash a shard',
      what: 'immediate shutdown of its Postgres; messages of projects on other shards arrive meanwhile',
      undone: 'started again; it recovers from its log',
      targets,
      lasts: 'outage',
      begin: (_bed, target) => serverOf(target).process.crash(),
      end: async (bed, target) => {
        await bed.othersFlow(target);
        await serverOf(target).process.start();
      },
    },
    {
      kind: 'freeze a shard',
      what: 'SIGSTOP of its Postgres and all sessions; messages of projects on other shards arrive meanwhile',
      undone: 'SIGCONT',
      targets,
      lasts: 'stall',
      begin: (_bed, target) => serverOf(target).freeze(),
      end: async (bed, target) => {
        await bed.othersFlow(target);
        serverOf(target).thaw();
      },
    },
    {
      kind: 'move project',
      what: '`gateway shards move` to the next shard',
      undone: 'it stays',
      targets: projects,
      lasts: 'moment',
      begin: ({ moves }, target) => moves.move(target),
      end: nothing,
    },
    {
      kind: 'kill move',
      what: 'SIGKILL of `gateway shards move` when the former shard refuses events',
      undone: 'an agent ends the move',
      targets: projects,
      lasts: 'moment',
      begin: ({ moves }, target) => moves.kill(target),
      end: ({ moves }, target) => moves.settle(target),
    },
  ];
}
