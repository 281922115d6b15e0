import { signal } from '@preact/signals'

/** Whether the page shows each call of the API as curl. Off until a person wants it; remembered on this device. */
export const developer = signal(localStorage.getItem('developer') === 'on')

export function showCalls(on: boolean): void {
  developer.value = on
  localStorage.setItem('developer', on ? 'on' : 'off')
}
