import { Link, Title } from '../parts.tsx'

/** The page of an address that the console does not have. */
export const NoSuchPage = () => (
  <>
    <Title>No such page</Title>
    <p>
      The console has no page at this address. <Link to="">Home</Link>
    </p>
  </>
)
