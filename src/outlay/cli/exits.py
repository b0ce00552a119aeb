"""What an exit says.

Exit 0: yes. Exit 1: the question is clear and the answer is no. Exit 2: the question cannot be read, or its answer not
be written. Exit 130 and 141, as a shell counts the signals of an interrupt and of a pipe without a reader.
"""

YES, NO, UNREADABLE, INTERRUPTED, UNHEARD = 0, 1, 2, 130, 141
