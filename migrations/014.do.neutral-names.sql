-- Sweeps and the holdings of deposit addresses are of several families of networks. Indexes and constraints keep their names.
do $$
begin
  alter table evm_sweeps rename to sweeps;
  alter table evm_holdings rename to address_holdings;
end
$$;
