"""What every part stands on: errors, files, devices, memory, threads and random numbers."""
