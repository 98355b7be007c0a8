"""What is measured and how: clocks, samples, memory of a process tree, GPU memory, bandwidth and roofline.

Knows numbers, processes and files; nothing of voices, stages or engines. Imports nothing of labkit but errors.

What each figure means, and what it misses:

* wall seconds are `time.perf_counter`; CPU seconds are user and system time of the whole process, all threads.
* peak RSS is sampled from outside every 20 ms over the process and its descendants, and compared with the
  kernel's own high-water mark of the process itself. Children are looked for every half second, so one that
  lives shorter may be missed, and so may a peak of a child that is shorter than a sample; pages shared between
  processes count once in each; memory on a device and swapped pages do not count. Watching costs the parent
  less than 1 % of a core, and the child nothing.
* GPU memory is null with its reason wherever nothing could be asked: never zero.
* bandwidth is that of one vectorized reading kernel in CPU time. See `bandwidth` for its bias.
"""
