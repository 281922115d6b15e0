-- How the reward of a generated statement was computed. Null: from the balance at each day's end, as earlier versions did.
alter table statements add column reward_method text,
  add constraint statements_reward_method check (reward_method is null or reward_method = 'TIME_WEIGHTED');
