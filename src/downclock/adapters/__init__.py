"""The outside: devices and clusters. Adapters translate; they decide nothing."""
