-- Limits are the same for all customers: settings of the deployment for requests, constants for records.
drop table if exists customer_limits;
