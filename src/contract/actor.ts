/** Who makes a change (API behaviour, Audit log). */
export const ACTOR_TYPES = ['API_CLIENT', 'OPERATOR', 'WORKER', 'COMMAND_LINE'] as const
export type ActorType = (typeof ACTOR_TYPES)[number]

export interface Actor {
  type: ActorType
  /** The API client, the operator, the name of the worker's loop, or the user of the operating system. */
  id: string
}

export interface NamedActor extends Actor {
  /** The name of the API client or operator, where it has one. */
  name?: string
}

/** Who makes a change, and through which request. */
export interface Origin {
  actor: Actor
  /** The id of the request; absent for changes without one. */
  request_id?: string
  /** The address that the request came from. */
  ip?: string
  /** The request's span, where it is traced. */
  traceparent?: string | undefined
  /** Whose order the actor carries out, if not its own: the maker of the orchestration rule that moves the money. */
  initiator?: Actor
}

/** Returns the origin of the changes that a command makes for this user of the operating system. */
export const originOfUser = (user: string): Origin => ({ actor: { type: 'COMMAND_LINE', id: user } })

/** Returns who ordered a change: the actor itself, or the maker of the rule that the worker carries out. */
export const initiatorOf = ({ actor, initiator = actor }: Origin): Actor => initiator

export const originOfLoop = (loop: string): Origin => ({ actor: { type: 'WORKER', id: loop } })
