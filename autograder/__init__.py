"""The grader of Forward Pass: it names the first tensor that differs and the mistake that reproduces it.

Data flows one way, and each file imports only from those above it:

    course    the modules, their files and folders
    case      the vocabulary of a case: samples, steps, faults, exercises
    steps     evaluates a case's steps, with or without faults
    checkpoints, golden   files whose hashes are pinned, and the recorded tensors among them
    loader, recorder, probe   load the learner's file and run one call of it     (the probe)
    compare   is this the expected value?                                        (the check, from here on)
    diagnose  which faults reproduce it?    locate  where does it first differ?    relations  what else is true of it?
    grade     the above, in order, for one exercise
    report    the result as text and as JSON
"""
