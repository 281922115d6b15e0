import { Title } from '../parts.tsx'

/** What needs a person first. */
export const Home = () => <Title>Home</Title>
